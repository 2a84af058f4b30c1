"""What notes say beside the fact: a trace must explain a loss without asking the machines."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.leader_tools import Solo, batch

LOG = Path("/b1/orders-0/00000000000000000000.log")


def test_an_append_names_the_producer_and_its_acks() -> None:
    solo = Solo()
    solo.produce_raw(batch(), acks=1)
    solo.produce_raw(batch(), acks=0)
    noted = solo.router.noted("append")
    assert [(each["client"], each["acks"]) for each in noted] == [("p1", 1), ("p1", 0)]


def test_a_role_names_leader_isr_and_log_end() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.lead("b2", ("b1", "b2"))
    solo.lead(None, ("b1",))
    first, second, third = solo.router.noted("role", "b1")
    assert (first["role"], first["leader"], first["log_end"]) == ("leader", "b1", 0)
    assert (second["role"], second["leader"]) == ("follower", "b2")
    assert (second["isr"], second["log_end"]) == (("b1", "b2"), 1)
    assert (third["role"], third["leader"], third["isr"]) == ("waiting", None, ("b1",))


def test_a_leader_notes_an_isr_that_the_controller_changed() -> None:
    solo = Solo()
    solo.decide(solo.state(isr=("b1", "b3")))
    assert [each["isr"] for each in solo.router.noted("isr")] == [("b1", "b3")]
    solo.decide(solo.state(isr=("b1", "b3")))
    assert len(solo.router.noted("isr")) == 1


def opened(solo: Solo) -> dict[str, object]:
    found: dict[str, object] = solo.router.noted("open-log", "b1")[-1]
    return found


def test_an_opened_log_says_what_was_found() -> None:
    solo = Solo()
    for value in (b"a", b"b", b"c"):
        solo.produce("b1", value, acks=1)
    solo.kill()
    file = solo.disks["b1"].open(LOG)
    file.truncate(file.size() - 5)
    file.close()
    solo.start("b1")
    noted = opened(solo)
    assert (noted["log_start"], noted["log_end"], noted["clean"]) == (0, 2, False)
    assert type(noted["cut_bytes"]) is int
    assert noted["cut_bytes"] > 0
    assert noted["epochs"] == ((solo.state().leader_epoch, 0),)
    assert "error" not in noted


def test_a_log_that_does_not_open_says_why() -> None:
    solo = Solo()
    solo.produce("b1", b"a", acks=1)
    solo.replica.opened.flush()
    solo.replica.opened.run_pending()
    solo.kill()
    file = solo.disks["b1"].open(LOG)
    file.write_at(30, bytes([file.read_at(30, 1)[0] ^ 0xFF]))
    file.close()
    solo.start("b1")
    noted = opened(solo)
    assert noted["role"] == "quarantined"
    assert noted["error"] == solo.replica.role.error.code  # type: ignore[attr-defined]
    assert str(LOG.name) in str(noted["detail"])
