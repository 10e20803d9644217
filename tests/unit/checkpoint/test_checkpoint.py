"""Checkpoints: trees are restored as they were, or refused by an error that names the reason."""

from __future__ import annotations

import json
import pickle
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import effax as jax
import effax.numpy as jnp
from effax.api.checkpoints import safetensors, save
from effax.api.checkpoints.leaves import taken
from effax.checkpoint import CheckpointError, DamagedCheckpoint, NotACheckpoint, restore
from effax.checkpoint import save as save_tree
from effax.ir.errors import BadArgument, EffaxError, RefError


class Pair(NamedTuple):
    first: Any
    second: Any


def state() -> dict[str, Any]:
    return {
        "w": jnp.arange(6.0).reshape(2, 3),
        "half": jnp.arange(4).astype(jnp.bfloat16),
        "small": jnp.array([1, -2, 3], "int4"),
        "complex": np.array([1 + 2j, 3], np.complex128),
        "big": np.arange(3, dtype=">f8"),
        "empty": jnp.zeros((0, 3)),
        "weak": jnp.asarray(1.0),
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(0, impl="rbg"), 3),
        "zero": np.zeros(2, jax.float0),
        "pair": Pair([jax.new_ref(jnp.ones(3)), np.float64(2.5)], (7, None)),
        "scalars": [True, 10**40, 0.1, float("-inf"), 1 - 2j, "é"],
    }


def same(x: object, y: object) -> bool:
    if isinstance(x, jax.Ref):
        return x is y
    if isinstance(x, jax.Array):
        assert isinstance(y, jax.Array)
        return x.aval == y.aval and x.numpy().tobytes() == y.numpy().tobytes()
    if isinstance(x, np.ndarray):
        assert isinstance(y, np.ndarray)
        return x.dtype.newbyteorder("=") == y.dtype and bool(np.all(x == y))
    return type(x) is type(y) and x == y


def test_a_tree_is_restored_as_it_was(tmp_path: Path) -> None:
    tree = state()
    jax.checkpoint.save(tmp_path / "new" / "step", tree)
    tree["pair"].first[0][...] = jnp.zeros(3)
    found = restore(tmp_path / "new" / "step", like=tree)
    assert jax.tree.all(jax.tree.map(same, tree, found))
    assert jax.tree.structure(tree) == jax.tree.structure(found)
    np.testing.assert_array_equal(tree["pair"].first[0][...], 1.0)
    paths = restore(tmp_path / "new" / "step")
    assert list(paths)[:2] == ["['big']", "['complex']"] and len(paths) == 19
    assert paths["['half']"].dtype == jnp.bfloat16 and same(paths["['key']"], tree["key"])


@pytest.mark.slow
def test_a_reference_that_a_compiled_step_updates_is_restored_in_place(tmp_path: Path) -> None:
    ref = jax.new_ref(jnp.zeros(3))

    @jax.jit
    def step(x: Any) -> Any:
        ref[...] += x
        return ref[0]

    step(1.0)
    jax.checkpoint.save(tmp_path / "a", {"r": ref})
    address = ref.unsafe_buffer_pointer()
    later = [float(step(1.0)), float(step(2.0))]
    assert restore(tmp_path / "a", like={"r": ref})["r"] is ref
    assert [float(step(1.0)), float(step(2.0))] == later and ref.unsafe_buffer_pointer() == address
    struct = jax.ShapeDtypeStruct((3,), "float32")
    np.testing.assert_array_equal(restore(tmp_path / "a", like={"r": struct})["r"], 1.0)
    with pytest.raises(BadArgument, match=r"the leaf \['r'\] of `like` has no type"):
        jax.jit(lambda x: restore(tmp_path / "a", like={"r": x}))(jnp.zeros(3))
    with pytest.raises(BadArgument, match=r"the leaf \[0\] cannot be saved"):
        jax.jit(lambda x: jax.checkpoint.save(tmp_path / "b", [x]))(jnp.zeros(3))
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"r": jnp.zeros(4)}, r"\['r'\] has another type than was saved"),
        ({"r": jnp.zeros(3, "int32")}, r"f32\[3\], as saved\n.*i32\[3\]"),
        ({"r": 3.0}, r"f32\[3\], as saved\n.*float"),
        ({"n": 3.0}, r"int, as saved"),
        ({"n": jnp.array(3)}, r"int, as saved"),
        ({"r": jnp.zeros(3), "q": 1}, r"lacks leaves of `like`\n.*\['q'\]\n.*\['n'\], \['r'\]"),
        ({"r": object()}, r"has no type"),
    ],
)
def test_another_tree_is_refused_by_the_names_of_its_leaves(
    like: Any, message: str, tmp_path: Path
) -> None:
    jax.checkpoint.save(tmp_path / "a", {"r": jax.new_ref(jnp.ones(3)), "n": 3})
    with pytest.raises(EffaxError, match=message):
        restore(tmp_path / "a", like=like, partial=True)


def test_leaves_are_left_out_on_request_only(tmp_path: Path) -> None:
    jax.checkpoint.save(tmp_path / "a", {"r": jnp.ones(3), "n": 3})
    with pytest.raises(CheckpointError, match=r"leaves that `like` lacks(.|\n)*\['r'\]"):
        restore(tmp_path / "a", like={"n": 0})
    assert restore(tmp_path / "a", like={"n": 0}, partial=True) == {"n": 3}


def test_a_failed_restore_leaves_every_reference_as_it_was(tmp_path: Path) -> None:
    refs = [jax.new_ref(jnp.full(3, i)) for i in range(3)]
    jax.checkpoint.save(tmp_path / "a", refs)
    for ref in refs:
        ref[...] += 10
    jax.freeze(refs[2])
    with pytest.raises(RefError, match="consumed"):
        restore(tmp_path / "a", like=refs)
    assert [int(ref[0]) for ref in refs[:2]] == [10, 11]
    with pytest.raises(RefError, match="consumed"):
        jax.checkpoint.save(tmp_path / "b", refs)


@pytest.mark.slow
def test_damage_of_any_byte_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    tree: dict[str, Any] = {"w": jax.new_ref(jnp.arange(40.0)), "n": 3, "b": jnp.ones(3)}
    jax.checkpoint.save(tmp_path, tree)
    tree["w"][...] = jnp.zeros(40)
    rng = np.random.default_rng(0)
    for file in tmp_path.iterdir():
        whole = file.read_bytes()
        assert whole[8 if file.suffix != ".json" else 0 :][:1] == b"{"
        damaged = [whole[: len(whole) // 2], b"", whole + b" "]
        for at in rng.integers(len(whole), size=30):
            flipped = bytes([whole[at] ^ (1 << rng.integers(8))])
            damaged += [whole[:at] + flipped + whole[at + 1 :]]
        for text in damaged:
            file.write_bytes(text)
            if file.suffix == ".json" and text[:-1] == whole:
                continue
            with pytest.raises((DamagedCheckpoint, NotACheckpoint)) as caught:
                restore(tmp_path, like=tree)
            if isinstance(caught.value, DamagedCheckpoint):
                assert caught.value.file == str(file) and str(file) in str(caught.value)
        file.write_bytes(whole)
        assert float(tree["w"][3]) == 0.0
    file.unlink()
    with pytest.raises((DamagedCheckpoint, NotACheckpoint)):
        restore(tmp_path, like=tree)


@pytest.mark.parametrize("stage", ["write_arrays", "write_index"])
def test_an_interrupted_save_changes_nothing(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> Any:
        (tmp_path / "a" / ("00000-of-00001-" + "0" * 16 + ".safetensors")).write_bytes(b"half")
        raise OSError("the disk is full")

    where = safetensors if stage == "write_arrays" else save
    with monkeypatch.context() as patched:
        patched.setattr(where, stage, stopped)
        with pytest.raises(CheckpointError, match=r"cannot be written\n.*the disk is full"):
            jax.checkpoint.save(tmp_path / "a", [1])
    with pytest.raises(NotACheckpoint, match="unfinished save"):
        restore(tmp_path / "a", like=[0])
    jax.checkpoint.save(tmp_path / "a", [1])
    with monkeypatch.context() as patched:
        patched.setattr(where, stage, stopped)
        with pytest.raises(CheckpointError, match="the disk is full"):
            jax.checkpoint.save(tmp_path / "a", [2], overwrite=True)
    assert restore(tmp_path / "a", like=[0]) == [1]
    jax.checkpoint.save(tmp_path / "a", [3], overwrite=True)
    assert restore(tmp_path / "a", like=[0]) == [3] and len(list((tmp_path / "a").iterdir())) == 2


def test_files_of_others_are_neither_read_nor_replaced(tmp_path: Path) -> None:
    for like in ([0], None):
        with pytest.raises(NotACheckpoint):
            restore(tmp_path / "nothing", like=like)
    (tmp_path / "index.json").write_text('{"format": "another"}')
    for overwrite in (False, True):
        with pytest.raises(CheckpointError, match=r"has a checkpoint|another program"):
            jax.checkpoint.save(tmp_path, [1], overwrite=overwrite)
    with pytest.raises(NotACheckpoint, match="another program"):
        restore(tmp_path, like=[0])
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="no checkpoint's"):
        jax.checkpoint.save(tmp_path, [1], overwrite=True)
    assert len(list(tmp_path.iterdir())) == 2
    jax.checkpoint.save(tmp_path / "a", [1])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        jax.checkpoint.save(tmp_path / "a", [1])
    error = pickle.loads(pickle.dumps(DamagedCheckpoint.of("x", "a", "b")))
    assert error.file == "x" and "x is damaged" in str(error)


def test_a_save_in_a_thread_is_of_the_contents_at_the_call(tmp_path: Path) -> None:
    ref, array = jax.new_ref(jnp.zeros(1000)), np.zeros(1000)
    saving = jax.checkpoint.save(tmp_path / "a", [ref, array], wait=False)
    ref[...], array[...] = jnp.ones(1000), 1
    saving.wait()
    assert saving.done() and not any(map(np.any, restore(tmp_path / "a").values()))
    failing = jax.checkpoint.save(tmp_path / "a", [1], wait=False)
    with pytest.raises(FileExistsError):
        failing.wait()
    unseen = jax.checkpoint.save(tmp_path / "a", [1], wait=False)
    while not unseen.done():
        pass
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unseen.__del__()
    assert "was not saved" in str(caught[0].message)
    with pytest.raises(FileExistsError):
        unseen.wait()


class Two:
    """Process 0 of two, of which the other one reports these texts."""

    rank, count = 0, 2

    def __init__(self, *reports: str) -> None:
        self.reports = iter(reports)
        self.sent: list[str] = []

    def gathered(self, text: str) -> list[str]:
        self.sent.append(text)
        return [text, next(self.reports)]


def test_the_fault_of_one_process_is_an_error_in_all(tmp_path: Path) -> None:
    fine, full = json.dumps(["", ""]), json.dumps(["", "the disk is full"])

    def saved(*reports: str) -> None:
        save.start_saving(tmp_path, [jnp.ones(2)], Two(*reports), False, True, lambda: None)

    with pytest.raises(CheckpointError, match=r"process 1 cannot save its part\n.*disk is full"):
        saved(fine, full)
    absent = json.dumps([json.dumps(["00001-of-00002-0123456789abcdef.safetensors", 9, 0]), ""])
    with pytest.raises(CheckpointError, match="the file of process 1 is not here"):
        saved(fine, absent, fine)
    other = save._write_parts(tmp_path, taken([jnp.ones(3)], True, False), Two())
    with pytest.raises(CheckpointError, match="process 1 saves another tree"):
        saved(fine, json.dumps([other, ""]), fine)
    with pytest.raises(NotACheckpoint):
        restore(tmp_path)
    jax.checkpoint.save(tmp_path, [1])
    assert len(list(tmp_path.iterdir())) == 2


def test_other_processes_learn_of_every_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise MemoryError("of 9 GB")

    fine = json.dumps(["", ""])
    refused = Two(fine)
    with pytest.raises(BadArgument, match="cannot be saved"):
        save.start_saving(tmp_path, [object()], refused, False, True, lambda: None)
    assert "cannot be saved" in refused.sent[0]
    monkeypatch.setattr(safetensors, "write_arrays", fail)
    full = Two(fine, fine)
    with pytest.raises(MemoryError):
        save.start_saving(tmp_path, [jnp.ones(2)], full, False, True, lambda: None)
    assert "MemoryError: of 9 GB" in full.sent[1]


@pytest.mark.slow
def test_a_manager_keeps_the_newest_steps(tmp_path: Path) -> None:
    with jax.checkpoint.CheckpointManager(tmp_path / "run", keep=2) as manager:
        assert manager.latest_step() is None
        with pytest.raises(NotACheckpoint, match="no checkpoint of a step"):
            manager.restore(like=[0])
        (tmp_path / "run" / "1").mkdir(parents=True)
        for step in (3, 5, 10):
            manager.save(step, [step], wait=False)
        assert manager.restore(like=[0]) == [10] and manager.restore(5, like=[0]) == [5]
        assert manager.all_steps() == [5, 10] and not (tmp_path / "run" / "1").exists()
        # After a return to an older step, the steps that follow are new.
        manager.save(6, [6])
        assert manager.all_steps() == [6, 10] and manager.latest_step() == 10
        manager.save(10, [0], overwrite=True)
        assert manager.restore(like=[1]) == [0]
        manager.save(10, [1], wait=False)
        with pytest.raises(FileExistsError):
            manager.save(11, [11])
    for keep in (0, True, 1.5):
        with pytest.raises(BadArgument, match="keep is the number"):
            jax.checkpoint.CheckpointManager(tmp_path, keep=keep)  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="at least 0"):
        manager.save(-1, [])


def test_files_are_safetensors(tmp_path: Path) -> None:
    tree = {"a": jnp.arange(3), "b": jnp.ones((2, 2), jnp.bfloat16), "k": jax.random.key(1)}
    jax.checkpoint.save(tmp_path, tree)
    (file,) = tmp_path.glob("*.safetensors")
    text = file.read_bytes()
    length = int.from_bytes(text[:8], "little")
    header = json.loads(text[8 : 8 + length])
    assert all(isinstance(x, str) for x in header.pop("__metadata__").values())
    assert length % 8 == 0 and header == {
        "['a']": {"dtype": "I32", "shape": [3], "data_offsets": [0, 12]},
        "['k']": {"dtype": "U32", "shape": [2], "data_offsets": [12, 20]},
        "['b']": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [20, 28]},
    }
    np.testing.assert_array_equal(np.frombuffer(text[8 + length :][:12], np.int32), tree["a"])
    assert len(text) == 8 + length + 28


def test_blocks_that_are_not_read_are_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safetensors, "BLOCK", 64)
    file, x = tmp_path / "f", np.arange(256, dtype=np.float32).reshape(16, 16)
    safetensors.write_arrays(file, {"x": x, "y": x.astype(np.complex128)}, {})
    text = bytearray(file.read_bytes())
    # A row is a block; one byte of row 7 is damaged.
    text[8 + int.from_bytes(text[:8], "little") + 64 * 7] ^= 1
    file.write_bytes(text)
    found = safetensors.Container(file)
    for index in (np.s_[0:3, 2:5], np.s_[8:16, 5:9], np.s_[15:15, 0:16]):
        out = np.empty(x[index].shape, np.float32)
        found.read("x", index, out)
        np.testing.assert_array_equal(out, x[index])
    with pytest.raises(DamagedCheckpoint, match="the checksum"):
        found.read("x", np.s_[6:9, 5:6], np.empty((3, 1), np.float32))
    whole = np.empty((16, 16), np.complex128)
    found.read("y", (slice(0, 16), slice(0, 16)), whole)
    np.testing.assert_array_equal(whole, x)


@pytest.mark.slow
def test_the_name_is_the_transformation_of_jax_too() -> None:
    assert "save" in dir(import_module("effax.checkpoint")) and jax.checkpoint.save is save_tree
    x = jnp.asarray(jax.grad(jax.checkpoint(jnp.sin, policy=None))(1.0))
    np.testing.assert_allclose(x, np.cos(1.0), rtol=1e-6)
    with pytest.raises(BadArgument, match="a callable"):
        cast(Any, jax.checkpoint)(3)
