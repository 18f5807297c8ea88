"""Runs at the same time in one store: each gives its own result, and none leaves a lock."""

import json
import random

import pytest

from kohort.flows.cli import main

HANG = 180.0  # seconds
MANY = 8


@pytest.fixture
def start_all(survey):
    """Start runs at once, try to prune their store, and wait for all of them."""

    def start_all(site, commands):
        children = [site.start(words) for words in commands]
        try:
            children[0].stderr.readline()
            refused = site.run("cache", "prune", "--all", "--store", site.store)
            ended = [child.communicate(timeout=HANG) for child in children]
        finally:
            for child in children:
                child.kill()
                child.communicate()
        return refused, [
            (child.returncode, out, err) for child, (out, err) in zip(children, ended, strict=True)
        ]

    return start_all


def wrong_after(site, refused, ended):
    """What is wrong after runs that were alive at the same time, whatever they released."""
    wrong = [err for code, _, err in ended if code != 0]
    if refused.returncode != 1 or "a run is using the store" not in refused.stderr:
        wrong.append(f"prune was not refused: {refused.stderr or refused.stdout}")
    wrong += [f"{each.kind}: {each.path.name}" for each in site.problems()]
    wrong += [run.state for run in site.runs() if run.state != "released"]
    return wrong + site.left_over()


def no_lock_is_left(site):
    """Whether who wants the store alone gets it."""
    return site.run("cache", "prune", "--all", "--store", site.store).returncode == 0


def test_two_of_the_same_to_one_folder(survey, new_site, start_all, tally):
    site = new_site()
    refused, ended = start_all(site, [site.command(survey, "--json")] * 2)
    wrong = wrong_after(site, refused, ended) + site.wrong_now(survey)
    written = [json.loads(out)["written"] for code, out, _ in ended if code == 0]
    wrong += [] if sorted(written) == [False, True] else [f"written: {written}"]
    right = site.protected() == survey.expected and no_lock_is_left(site)
    tally("two runs of the same, one folder", wrong=wrong, recovered=right)


def test_two_of_the_same_to_two_folders(survey, new_site, start_all, tally):
    site = new_site()
    commands = [[*site.command(survey), "--out", str(site.folder / name)] for name in ("one", "two")]
    refused, ended = start_all(site, commands)
    wrong = wrong_after(site, refused, ended)
    found = [bytes_in(site.folder / name) for name in ("one", "two")]
    right = found == [[survey.expected]] * 2 and no_lock_is_left(site)
    tally("two runs of the same, two folders", wrong=wrong, recovered=right)


def test_eight_different_ones(sample_plan, sample_wave, new_site, start_all, rng, tally, tmp_path):
    site = new_site()
    commands, expected = [], []
    for number, (plan, wave) in enumerate(different(sample_plan, sample_wave, rng, tmp_path)):
        alone = tmp_path / f"alone-{number}"
        assert main(["protect", str(plan), str(wave), "--out", str(alone), "--in-memory"]) == 0
        expected += bytes_in(alone)
        out = site.folder / f"out-{number}"
        commands.append(["protect", str(plan), str(wave), "--out", str(out), "--store", str(site.store)])
    refused, ended = start_all(site, commands)
    wrong = wrong_after(site, refused, ended)
    found = [bytes_in(site.folder / f"out-{number}") for number in range(MANY)]
    wrong += [f"run {n} has other bytes" for n in range(MANY) if found[n] and found[n] != [expected[n]]]
    right = found == [[each] for each in expected] and no_lock_is_left(site)
    tally("eight different runs", tried=MANY, wrong=wrong, recovered=right)


def bytes_in(out):
    """The protected files of all versions in a folder."""
    return [path.read_bytes() for path in sorted(out.glob("v*/public/protected.parquet"))]


def different(sample_plan, sample_wave, rng: random.Random, folder):
    """Eight pairs of plan and wave, no two the same; some share a plan, some a wave."""
    waves = sorted(sample_wave.parent.glob("household-*.parquet"))
    text, plans = sample_plan.read_text(), []
    assert text.count("\nk = 5\n") == 1
    for number, k in enumerate(rng.sample(range(3, 12), 4)):
        plans.append(folder / f"plan-{number}.toml")
        plans[-1].write_text(text.replace("\nk = 5\n", f"\nk = {k}\n"))
    return rng.sample([(plan, wave) for plan in plans for wave in waves], MANY)
