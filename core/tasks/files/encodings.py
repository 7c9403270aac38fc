"""Which encoding a text file is in: UTF-8, UTF-16, CP1252, GB18030 or CP949.

charset-normalizer decides between Chinese and Korean where their common characters do not. Alone it takes a file in
CP1252 with one accented line, as English files often have, for Chinese in half of the cases, and with two lines in one
of seven; ours in none of 200.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

from core.config import ReadingConfig
from core.config.fields import fields_of
from core.errors import TaskError
from core.messages import Message

Encoding = Literal["utf-8", "utf-16", "cp1252", "gb18030", "cp949"]

ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
CHUNK_BYTES = 2**20
SAMPLE_BYTES = 2**16
LINE_BYTES = 2_000
LINES_PER_CHUNK_BYTES = 2**12
LINE_MAX_BYTES = 2**24
UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
UTF16_CODECS: Mapping[bytes, str] = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
NON_ASCII = re.compile(rb"[\x80-\xff]")
# Control characters that no text holds, private use and what Unicode leaves unassigned for good.
NO_TEXT = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\ud800-\uf8ff\ufdd0-\ufdef\ufffe\uffff]")
CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
CONTROL_SHARE = 0.01
# The commonest characters of running text in either language; they part short texts whose bytes suit both.
COMMON_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当"
    "没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物"
    "手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条"
    "平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听"
    "白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运笔啊吗吧呢哪谁店房酒服"
)
COMMON_HANGUL = frozenset(
    "이다는의을에가고지하한은로기를도사리서어나자아인해그시대만수보있일라정으것들주장영제화거스과전게여상안면부와내원니었무조비성유말국없공생우적동구위"
    "세모소오진습연재개더신분오경좋미해트했연관마당물방할치계요중려데선음식바실발까년간람시단너저드금르건감문복회행점결교산명야러난설된될때따또많모두"
)
# Usual rows of the double-byte sets, by lead byte: signs in both; in CP949 also letters such as ㅋ, and Hangul; in
# GB18030 the commoner half of the Han characters.
SIGN_LEADS = (0xA1, 0xA3)
HANGUL_LEADS = frozenset({*SIGN_LEADS, 0xA4, *range(0xB0, 0xC9)})
HAN_LEADS = frozenset({*SIGN_LEADS, *range(0xB0, 0xD8)})
TRAIL_MIN = 0xA1
# A sample is in an Asian encoding when so large a share of its characters lies in the usual rows.
USUAL_SHARE = 0.5
# A share of common characters that is so much larger decides by itself.
CLEARLY = 2.0
BROKEN_SHARE = 0.02
DAMAGED_UTF8_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a file found.

    Attributes:
        utf8: it is UTF-8 from the first byte to the last.
        empty: it holds nothing but white space.
        nul: where the first NUL byte is.
        long_line: a line is so long that it would not fit in memory with ease.
        sample: lines with bytes beyond ASCII.
    """

    utf8: bool
    empty: bool
    nul: int | None
    long_line: bool
    sample: tuple[bytes, ...]


def detect_encoding(stream: BinaryIO, name: str = "The file") -> Encoding:
    """The encoding of a file, read whole but never kept; the stream is then at its start again.

    A byte order mark decides, then whether all of it is UTF-8, then a sample of the lines beyond ASCII.

    Raises: TaskError for a file that is empty or holds no text.
    """
    stream.seek(0)
    head = stream.read(SAMPLE_BYTES)
    found = _marked(head, name)
    if found is None and b"\0" in head:
        found = "utf-16" if _utf16_codec(head) else None
    if found is None:
        scan = scan_bytes(stream)
        if scan.empty:
            raise empty_file(name)
        if scan.nul is not None:
            raise TaskError(
                "{file} holds binary data, not text (a NUL at byte {place:,}): save it as text in UTF-8.",
                file=name,
                place=scan.nul + 1,
            )
        if scan.long_line:
            raise TaskError(
                "{file} has a line of more than {most} MB, so it is no table of texts: put one row on each line.",
                file=name,
                most=LINE_MAX_BYTES // 2**20,
            )
        if not scan.utf8 and _control_share(scan.sample) > CONTROL_SHARE:
            raise TaskError("{file} holds binary data, not text: save it as text in UTF-8.", file=name)
        found = "utf-8" if scan.utf8 else legacy_encoding(scan.sample)
    stream.seek(0)
    return found


def empty_file(name: str) -> TaskError:
    return TaskError("{file} is empty: give a file with texts and labels.", file=name)


def codec_of(stream: BinaryIO, encoding: Encoding) -> str:
    """Python's codec for a file in this encoding; the stream is then behind a byte order mark."""
    stream.seek(0)
    head = stream.read(SAMPLE_BYTES)
    if encoding == "utf-8":
        stream.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
        return encoding
    if encoding == "utf-16":
        mark = UTF16_CODECS.get(head[:2])
        stream.seek(2 if mark else 0)
        return mark or _utf16_codec(head) or "utf-16-le"
    stream.seek(0)
    return encoding


def _marked(head: bytes, name: str) -> Encoding | None:
    """The encoding that a byte order mark names. Raises: TaskError for UTF-32."""
    if head.startswith(UTF32_MARKS) and len(head) % 4 == 0:
        raise TaskError("{file} is UTF-32, which is not read: save it as UTF-8.", file=name)
    if head.startswith(codecs.BOM_UTF8):
        # Behind the mark, a file that holds nothing or NULs is refused like any other.
        return "utf-8" if head[3:].strip() and b"\0" not in head else None
    if head[:2] in UTF16_CODECS:
        if not head[2:].replace(b"\0", b"").strip():
            raise empty_file(name)
        return "utf-16"
    return None


def _utf16_codec(head: bytes) -> str | None:
    """The byte order in which bytes with NULs among them read as lines of text; None where neither does.

    Letters of ASCII become other letters in the wrong order, so the order that gives more of ASCII is right.
    """
    found: dict[str, int] = {}
    for codec in UTF16_CODECS.values():
        try:
            text = codecs.getincrementaldecoder(codec)().decode(head)
        except UnicodeDecodeError:
            continue
        if not NO_TEXT.search(text) and ("\n" in text or "\r" in text):
            found[codec] = sum(map(str.isascii, text))
    return max(found, key=lambda codec: found[codec]) if found else None


def scan_bytes(stream: BinaryIO) -> Scan:
    """Read a file once, in chunks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8, empty, nul, offset, unbroken, longest = True, True, None, 0, 0, 0
    sample: list[bytes] = []
    for chunk in chunks(stream):
        if nul is None and (at := chunk.find(0)) >= 0:
            nul = offset + at
        empty = empty and not chunk.removeprefix(codecs.BOM_UTF8).strip()
        utf8 = utf8 and _readable(decoder, chunk)
        if not chunk.isascii():
            # A chunk behind the first may begin within a character, but not behind its first line break.
            start = max(0, chunk.find(b"\n")) if offset else 0
            sample += _non_ascii_lines(chunk, SAMPLE_BYTES - sum(map(len, sample)), start=start)
        offset += len(chunk)
        unbroken = 0 if b"\n" in chunk or b"\r" in chunk else unbroken + len(chunk)
        longest = max(longest, unbroken)
    utf8 = utf8 and _readable(decoder, b"", final=True)
    return Scan(utf8, empty, nul, longest >= LINE_MAX_BYTES, tuple(sample))


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """All of a stream, from its start."""
    stream.seek(0)
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _readable(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _non_ascii_lines(chunk: bytes, room: int, *, start: int) -> Iterator[bytes]:
    """Some lines of a chunk from `start` on, each from its first byte beyond ASCII, which no character is cut by."""
    room = min(room, LINES_PER_CHUNK_BYTES)
    while room > 0 and (found := NON_ASCII.search(chunk, start)):
        end = chunk.find(b"\n", found.start())
        start = end if end >= 0 else len(chunk)
        yield chunk[found.start() : min(start, found.start() + min(room, LINE_BYTES))]
        room -= min(LINE_BYTES, start - found.start())


def _control_share(sample: tuple[bytes, ...]) -> float:
    return sum(len(CONTROLS.findall(line)) for line in sample) / max(1, sum(map(len, sample)))


def legacy_encoding(sample: tuple[bytes, ...]) -> Encoding:
    """The likeliest encoding of lines that are not all UTF-8; damaged UTF-8 stays UTF-8."""
    if _broken_share(sample, "utf-8") < DAMAGED_UTF8_SHARE:
        return "utf-8"
    han, hangul = usual_shares(sample)
    asian: list[Encoding] = []
    if han >= USUAL_SHARE and _broken_share(sample, "gb18030") < BROKEN_SHARE:
        asian.append("gb18030")
    if hangul >= USUAL_SHARE and _broken_share(sample, "cp949") < BROKEN_SHARE:
        asian.append("cp949")
    if len(asian) == 1:
        return asian[0]
    if asian:
        return _han_or_hangul(sample)
    if _broken_share(sample, "cp1252") < BROKEN_SHARE:
        return "cp1252"
    return min(("cp1252", "gb18030", "cp949"), key=lambda encoding: _broken_share(sample, encoding))


def usual_shares(sample: tuple[bytes, ...]) -> tuple[float, float]:
    """Shares of the double bytes that lie in the usual rows of GB18030 and of CP949."""
    pairs = han = hangul = 0
    for line in sample:
        at = 0
        while at < len(line):
            lead = line[at]
            if lead < 0x80:
                at += 1
                continue
            if at + 1 < len(line) and line[at + 1] >= TRAIL_MIN:
                han += lead in HAN_LEADS
                hangul += lead in HANGUL_LEADS
            pairs += 1
            at += 2
    return (han / pairs, hangul / pairs) if pairs else (0.0, 0.0)


def _han_or_hangul(sample: tuple[bytes, ...]) -> Encoding:
    """Bytes that suit both: whose common characters are there decides, or charset-normalizer where neither's are."""
    han = _share_among(sample, "gb18030", COMMON_HAN)
    hangul = _share_among(sample, "cp949", COMMON_HANGUL)
    if max(han, hangul) > CLEARLY * min(han, hangul):
        return "gb18030" if han > hangul else "cp949"
    from charset_normalizer import from_bytes

    best = from_bytes(b"\n".join(sample), cp_isolation=["gb18030", "cp949"]).best()
    if best is not None and best.encoding in {"gb18030", "cp949"}:
        return "gb18030" if best.encoding == "gb18030" else "cp949"
    return "gb18030" if han > hangul else "cp949"


def _share_among(sample: tuple[bytes, ...], encoding: str, common: frozenset[str]) -> float:
    letters = [c for line in sample for c in line.decode(encoding, "replace") if c > "\u3400"]
    return sum(c in common for c in letters) / len(letters) if letters else 0.0


def _broken_share(sample: tuple[bytes, ...], encoding: str) -> float:
    """Share of the characters beyond ASCII that the encoding cannot read; a line cut at its end is none."""
    broken = read = 0
    for line in sample:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(line)
        beyond = [c for c in text if c > "\x7f"]
        broken += beyond.count("\ufffd")
        read += len(beyond)
    return broken / read if read else 0.0


def undecodable_line(stream: BinaryIO, codec: str) -> int:
    """The line, from 1, of the first byte from here on that the codec cannot read."""
    decoder, lines = codecs.getincrementaldecoder(codec)(), 1
    try:
        while chunk := stream.read(CHUNK_BYTES):
            lines += decoder.decode(chunk).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        lines += error.object[: error.start].decode(codec).count("\n")
    return lines


def refused_encoding(name: str, encoding: str, line: int) -> TaskError:
    """The sentence for a file that turns out to be in another encoding, half-way."""
    message = Message(
        "{file}, line {line:,}, is not {encoding} text: save the file as UTF-8, or choose another encoding.",
        file=name,
        line=line,
        encoding=Message(fields_of(ReadingConfig)["encoding"].values_in_words[encoding]),
    )
    return TaskError(message)
