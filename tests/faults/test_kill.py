"""kill -9 at random moments: nothing half done is seen, nothing finished is lost."""

import json
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

LANES = 2  # sites that are used at the same time
KILLS = 13  # a lane
AMONG_STAGES = 0.8  # the share of the kills that come when stages run
OWN_SERVER = 5  # every so many sites of a lane, its commands have embedded servers
UNCACHED = ("verify", "gate", "publish")


@dataclass
class Round:
    """A run that is killed a few times and then ends: what became of it."""

    embedded: bool
    kills: int = 0
    lost: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    recovered: bool = True


def test_kill_nine_at_random_moments(survey, new_site, rng, tally):
    first_line, rest = pace_of(new_site("undisturbed"), survey)

    def lane(number):
        chance, rounds = random.Random(f"{rng.random()} {number}"), []
        while sum(each.kills for each in rounds) < KILLS:
            embedded = len(rounds) % OWN_SERVER == OWN_SERVER - 1
            site = new_site(f"lane-{number}-{len(rounds)}", embedded=embedded)
            rounds.append(Round(embedded))
            go_round(site, survey, chance, (first_line, rest), rounds[-1])
        return rounds

    with ThreadPoolExecutor(LANES) as pool:
        rounds = [each for lane in pool.map(lane, range(LANES)) for each in lane]
    assert sum(each.kills for each in rounds) >= 25
    rounds = [each for each in rounds if each.kills]
    for embedded in (False, True):
        of_kind = [each for each in rounds if each.embedded is embedded]
        for each in of_kind:
            tally(
                "kill -9 of a run" + (" with its own server" if embedded else ""),
                tried=each.kills,
                lost=each.lost,
                wrong=each.wrong,
                recovered=each.recovered,
            )


def pace_of(site, survey):
    """Seconds to the first finished stage, and from there to the end, of an undisturbed run."""
    started = time.monotonic()
    with site.start(site.command(survey)) as child:
        child.stderr.readline()
        first = time.monotonic()
        child.communicate()
    assert child.returncode == 0
    assert site.protected() == survey.expected
    return first - started, time.monotonic() - first


def go_round(site, survey, chance, pace, noted):
    """Kill one to three times, look at what is left each time, then let a run end."""
    first_line, rest = pace
    for already in range(chance.randint(1, 3)):
        left = rest / (already + 1)  # much is cached after the first
        if not killed(site, survey, chance, (first_line, left)):
            break  # it had ended before
        noted.kills += 1
        noted.wrong += site.wrong_now(survey) + wrong_journal(site)
        noted.wrong += [f"process {pid} outlived the kill" for pid in site.outlived()]
    finished = {
        (stage["stage"], stage["block"])
        for run in site.runs()
        for stage in run.stages
        if stage["stage"] not in UNCACHED
    }
    released = site.protected() is not None
    ended = finish(site, survey, chance)
    again = [row for row in ended["stages"] if not row["cached"]]
    noted.lost += sorted(finished & {(row["stage"], row["block"]) for row in again}, key=str)
    noted.lost += ["a release"] if released and ended["version"] != 1 else []
    noted.wrong += site.wrong_now(survey) + site.left_over()
    noted.recovered = site.protected() == survey.expected


def killed(site, survey, chance, pace):
    """Start a run and kill it at a moment of its life; False if it had ended by then."""
    first_line, rest = pace
    child = site.start(site.command(survey))
    try:
        if chance.random() < AMONG_STAGES:
            child.stderr.readline()
            moment = chance.uniform(0, rest)
        else:
            moment = chance.uniform(0, first_line)
        child.wait(moment)
    except subprocess.TimeoutExpired:
        pass
    finally:
        child.kill()
        child.communicate()
    assert child.returncode in (0, -signal.SIGKILL)
    return child.returncode != 0


def wrong_journal(site):
    """A run that was killed has vanished, unless it had released and said so, or not yet begun."""
    states = [run.state for run in site.runs()]
    allowed = {"vanished", "released"} if site.protected() is not None else {"vanished"}
    return [f"a killed run is {state}" for state in states if state not in allowed]


def finish(site, survey, chance):
    """`kohort resume` where there is something to resume and chance has it so, else `kohort protect`."""
    verified = json.loads(site.run("cache", "verify", "--store", site.store, "--json").stdout or "{}")
    assert {each["kind"] for each in verified.get("problems", [])} <= {"left over"}
    vanished = [run for run in site.runs() if run.state == "vanished"]
    if vanished and site.runs()[0].state == "vanished" and chance.random() < 0.6:
        done = site.run("resume", "--json")
        kept = vanished[0].kept
        assert f"resuming {vanished[0].id}: {kept} of its stages are finished" in done.stderr
    else:
        done = site.run(*site.command(survey, "--json"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
