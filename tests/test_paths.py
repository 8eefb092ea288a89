"""The gate: what passes is below the root, what does not says what to do."""

import tempfile
import unicodedata
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import MemoryTool, Refused, messages, open_store, paths

REFUSED = {
    messages.PATH_OUTSIDE: [
        "",
        "/",
        "memories",
        "memories/x",
        "/memories2/x",
        "/memoriesfoo",
        "/memories.md",
        "/MEMORIES/x",
        "//memories/x",
        "/etc/passwd",
        " /memories/x",
        "/memories\\x",
        "/memories\0/x",
        "file:///memories/x",
    ],
    messages.PATH_DOTS: [
        "/memories/..",
        "/memories/.",
        "/memories/a/../b",
        "/memories/./b",
        "/memories/...",
        "/memories/ ",
        "/memories/. .",
        "/memories/a/ ./b",
        "/memories/\u3000",
    ],
    messages.PATH_BACKSLASH: ["/memories/..\\x", "/memories/a\\b", "/memories/\\"],
    messages.PATH_CHARACTERS: [
        "/memories/a\0b",
        "/memories/a\nb",
        "/memories/a\tb",
        "/memories/\x1b[31m",
        "/memories/a\x7f",
        "/memories/a\u200bb",
        "/memories/\u202eevil",
        "/memories/\ufeffx",
        "/memories/a\u2028b",
        "/memories/a\u2029b",
        "/memories/\U000e0041",
        "/memories/\ud800",
        "/memories/a\udcff",
    ],
    messages.PATH_LOOKALIKE: [
        "/memories/a\uff0fb",
        "/memories/\u2024\u2024",
        "/memories/\u2025",
        "/memories/\u2026",
        "/memories/\uff0e\uff0e",
        "/memories/a\uff3cb",
        "/memories/\u2100",
    ],
    messages.PATH_NOT_NFC: ["/memories/e\u0301", "/memories/\u212b", "/memories/ﬀ\u0301".replace("ﬀ", "a")],
    messages.PATH_ENCODED: [
        "/memories/%2e%2e/x",
        "/memories/%2E%2e",
        "/memories/.%2e/x",
        "/memories/%2e",
        "/memories/%252e%252e",
        "/memories/%25252e%25252e",
        "/memories/a%2fb",
        "/memories/a%5cb",
        "/memories/a%00b",
        "/memories/a%0ab",
        "/memories/%ff",
        "/memories/%c0%ae%c0%ae",
        "/memories/a%ef%bc%8fb",
        "/memories/%20",
        "/memories/%ed%a0%80",
        "/memories/\uff052e\uff052e\uff052fetc",
        "/memories/\ufe6a2e",
        "/memories/%ef%bc%852e%ef%bc%852e",
        "/memories/%2ecommonplace/x",
    ],
    messages.PATH_LONG_NAME: [
        "/memories/%" + "25" * 20_000,
        "/memories/" + "é/" * 3 + "n" * 256,
        "/memories/a/" + "n" * 256,
        "/memories/" + "n" * 256,
        "/memories/" + "é" * 128,
    ],
    messages.PATH_DEEP: ["/memories/" + "a/" * 1_000_000, "/memories" + "/d" * 21],
    messages.PATH_LONG: [
        "/memories" + "/éééé" * 3 + ("/" + "é" * 100) * 5,
        "/memories" + ("/" + "n" * 200) * 5 + "/" + "n" * 10,
    ],
    messages.PATH_RESERVED: [
        "/memories/.commonplace",
        "/memories/.commonplace/tmp/lock",
        "/memories//.commonplace",
        "/memories/.CommonPlace/x",
        "/memories/.ｃommonplace",
        "/memories/.commonplace\ufe0f",
        "/memories/.common\u034fplace/x",
    ],
}

ALLOWED = {
    "/memories": "",
    "/memories/": "",
    "/memories///": "",
    "/memories/a": "a",
    "/memories//a///b/": "a/b",
    "/memories/100%.md": "100%.md",
    "/memories/50%-off": "50%-off",
    "/memories/%41": "%41",
    "/memories/%zz": "%zz",
    "/memories/a..b.txt": "a..b.txt",
    "/memories/..a": "..a",
    "/memories/a..": "a..",
    "/memories/.hidden": ".hidden",
    "/memories/a/.commonplace/x": "a/.commonplace/x",
    "/memories/ a ": " a ",
    "/memories/~": "~",
    "/memories/C:": "C:",
    "/memories/.commonplace2": ".commonplace2",
    "/memories/\u2764\ufe0f.md": "\u2764\ufe0f.md",
    "/memories/é.md": "é.md",
    "/memories/日本語/🫖": "日本語/🫖",
    "/memories/" + "n" * 255: "n" * 255,
    "/memories" + "/d" * 20: "/".join("d" * 20),
    "/memories" + ("/" + "n" * 200) * 5 + "/" + "n" * 9: "/".join(["n" * 200] * 5 + ["n" * 9]),
}


@pytest.mark.parametrize(("reason", "path"), [(reason, path) for reason in REFUSED for path in REFUSED[reason]])
def test_a_hostile_path_is_refused_with_its_reason_on_one_clean_line(reason: str, path: str) -> None:
    with pytest.raises(Refused) as refused:
        paths.parse(path)
    assert str(refused.value).endswith(f" is not allowed: {reason}")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(("path", "key"), ALLOWED.items())
def test_an_ordinary_path_is_its_key(path: str, key: str) -> None:
    assert paths.parse(path) == key
    assert paths.parse(paths.show(key)) == key
    assert paths.is_key(key) or key == ""


@pytest.mark.parametrize("path", [path for some in REFUSED.values() for path in some])
@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "delete", "rename", "rename to"])
def test_no_command_takes_a_hostile_path(command: str, path: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("canary")
    fields = {
        "path": path,
        "file_text": "x",
        "old_str": "x",
        "insert_line": 0,
        "insert_text": "x",
        "new_path": "/memories/y",
    }
    if command == "rename to":
        command, fields = "rename", {"old_path": "/memories/there", "new_path": path}
    with open_store(tmp_path / "memories") as store:
        store.write("there", "x")
        with pytest.raises(Refused):
            MemoryTool(store).execute({"command": command, **fields})
        assert [entry.path for entry in store.list()] == ["there"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["memories", "outside.txt"]
    assert outside.read_text() == "canary"


# Pieces that hostile paths are made of, so that Hypothesis does not have to find them letter by letter.
PIECES = st.sampled_from(
    "/|//|.|..|%2e|%2f|%5c|%25|%00|\\|\0|\n|~|a|é|e\u0301|\u2024|\uff0f|/memories|memories|.commonplace| |\u202e|\ud800"
    "|%|node_modules|-|nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn".split("|")
)
HOSTILE = st.one_of(st.text(), st.lists(PIECES, max_size=12).map("".join)).flatmap(
    lambda tail: st.sampled_from([tail, "/memories" + tail, "/memories/" + tail])
)


@given(HOSTILE)
@settings(max_examples=2000)
def test_whatever_passes_the_gate_is_plainly_spelled(path: str) -> None:
    try:
        key = paths.parse(path)
    except Refused:
        return
    assert paths.parse(paths.show(key)) == key
    if key == "":
        return
    assert unicodedata.is_normalized("NFC", key)
    assert len(paths.show(key).encode()) <= paths.MAX_BYTES
    segments = key.split("/")
    assert len(segments) <= paths.MAX_SEGMENTS
    for segment in segments:
        assert 0 < len(segment.encode()) <= paths.MAX_SEGMENT_BYTES
        decoded = segment
        while unquote(decoded) != decoded:
            decoded = unquote(decoded)
        for spelling in (segment, decoded, unicodedata.normalize("NFKC", decoded)):
            assert spelling.strip(". ") != ""
            assert not set(spelling) & set("/\\\0\n\r\x1b\u2028\u2029\u202e")
    assert segments[0].casefold() != ".commonplace"


@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_whatever_passes_the_gate_stays_below_the_root_of_a_directory(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "in" / "memories"
        with open_store(root) as store:
            try:
                MemoryTool(store).execute({"command": "create", "path": path, "file_text": "x"})
            except Refused:
                assert list(store.list()) == []
            else:
                (entry,) = store.list()
                file = root / entry.path
                assert file.read_text() == "x"
                assert file.resolve().is_relative_to(root.resolve())
        assert [item.name for item in Path(folder).iterdir()] == ["in"]
        assert [item.name for item in (Path(folder) / "in").iterdir()] == ["memories"]


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_a_name_quoted_for_a_url_is_refused_only_for_what_it_hides(name: str) -> None:
    """A percent-encoded spelling passes only where what it decodes to would pass, but for its Unicode form."""
    try:
        paths.parse("/memories/" + quote(name, safe=""))
    except Refused:
        return
    assert "/" not in name
    paths.parse("/memories/" + unicodedata.normalize("NFC", name))
