"""Detection of encodings in realistic text, short and long."""

from __future__ import annotations

import pytest

from core.errors import TaskError
from core.tasks.files.encodings import Encoding, check_encoding, codec_of, detect_encoding
from tests.cases import each

CHINESE = [
    "房间很干净，服务员态度也不错，下次还会再来。",
    "早餐种类太少，而且味道一般，不值这个价钱。",
    "离地铁站很近，出行非常方便。",
    "隔音效果太差了，晚上根本睡不着觉！",
    "这部电影的故事情节很感人，演员表演也很自然。",
    "手机屏幕用了两个月就坏了，客服也不理人。",
]
KOREAN = [
    "정말 재미있게 봤습니다. 배우들의 연기도 훌륭했어요.",
    "시간이 아까운 영화였다. 다시는 보고 싶지 않다.",
    "음식이 맛있고 직원분들도 친절하셨습니다.",
    "배송이 너무 늦어서 화가 났지만 제품은 괜찮네요 ㅋㅋㅋ",
    "가격에 비해 품질이 좋지 않은 것 같아요.",
]
FRENCH = [
    "Le film était plutôt réussi, même si la fin m'a déçu.",
    "Où est passé le scénario ? C'est très gênant.",
    "Un cœur brisé, une fête gâchée… quelle déception !",
    "Ça commence bien, puis l'intérêt s'éteint.",
]
GERMAN = [
    "Der Film war für mich eine große Enttäuschung.",
    "Schöne Bilder, schöne Musik – völlig unglaubwürdige Geschichte.",
    "Die Zimmer waren sauber, das Frühstück könnte größer sein.",
    "„Nie wieder“, sagte meine Frau über dieses Hotel.",
]
SPANISH = ["El baño estaba sucio.", "¿Dónde está la habitación que pedí?", "¡Qué película más aburrida, señor!"]
LANGUAGES = {"cp1252": [FRENCH, GERMAN, SPANISH], "gb18030": [CHINESE], "cp949": [KOREAN]}
ASCII = ["a plain film", "nothing, really", "it is what it is"]


def file_of(lines: list[str], header: str = "text,label") -> str:
    return "\n".join([header, *(f'"{line}",{i % 2}' for i, line in enumerate(lines))]) + "\n"


def detect(raw: bytes) -> str:
    return detect_encoding(raw, "'rows.csv'")


@each(("encoding", "lines"), [(encoding, lines) for encoding, texts in LANGUAGES.items() for lines in texts])
class TestTextsOfALanguage:
    def test_one_line_is_enough(self, encoding: str, lines: list[str]) -> None:
        assert [detect(file_of([line]).encode(encoding)) for line in lines] == [encoding] * len(lines)

    def test_they_are_found_behind_a_long_stretch_of_ascii(self, encoding: str, lines: list[str]) -> None:
        raw = (file_of(ASCII * 100_000) + file_of(lines)).encode(encoding)
        assert len(raw) > 4 * 2**20
        assert detect(raw) == encoding

    @each("unicode", ["utf-8", "utf-8-sig"])
    def test_utf8_is_found(self, encoding: str, lines: list[str], unicode: str) -> None:
        assert detect(file_of(lines).encode(unicode)) == detect(file_of(ASCII).encode(unicode)) == "utf-8"

    def test_utf16_is_found_by_its_mark(self, encoding: str, lines: list[str]) -> None:
        text = file_of(lines)
        for raw in (b"\xff\xfe" + text.encode("utf-16-le"), b"\xfe\xff" + text.encode("utf-16-be")):
            assert detect(raw) == "utf-16"
            assert raw.decode(codec_of("utf-16", raw)) == text


@each("damage", ["cut within a character", "a wrong byte"])
def test_damaged_utf8_stays_utf8(damage: str) -> None:
    raw = file_of(CHINESE * 5).encode()
    raw = raw.rstrip(b'",01\n')[:-1] if damage.startswith("cut") else raw[:200] + b"\xff" + raw[200:]
    with pytest.raises(UnicodeDecodeError):
        raw.decode()
    assert detect(raw) == "utf-8"


@each(
    ("raw", "part"),
    [
        (b"", "is empty"),
        (b" \r\n\t", "is empty"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"\xff\xfe", "is empty"),
        (b"\xfe\xff\0 \0\n", "is empty"),
        (b"text,label\na\0b,x\n", "not a table of texts"),
        ("text\n".encode("utf-32"), "not a table of texts"),
        ("text\n".encode("utf-16-le"), "not a table of texts"),
    ],
)
def test_what_is_no_text_is_refused_in_one_sentence(raw: bytes, part: str) -> None:
    with pytest.raises(TaskError) as caught:
        detect(raw)
    assert part in str(caught.value)
    assert str(caught.value).startswith("'rows.csv' ")
    assert str(caught.value).endswith(".")


@each("encoding", ["utf-8", "gb18030", "cp949", "utf-16"])
def test_the_line_that_cannot_be_read_is_named(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = "utf-16-le" if encoding == "utf-16" else encoding
    good = "".join(f"{line}\n" for line in (KOREAN if encoding == "cp949" else CHINESE)).encode(codec)
    bad = b"\x00\xd8\x41\x00" if encoding == "utf-16" else b"\xff\xff"
    line = good.decode(codec).count("\n") + 1
    for size in (50, 10_000):
        monkeypatch.setattr("core.tasks.files.encodings.CHUNK_BYTES", size)
        check_encoding(good, encoding, "'rows.csv'")
        for raw in (good + bad + good, good + bad[:1]):
            with pytest.raises(TaskError) as caught:
                check_encoding(raw, encoding, "'rows.csv'")
            assert str(caught.value).startswith(f"'rows.csv', line {line}, is not valid {encoding.upper()[:3]}")
