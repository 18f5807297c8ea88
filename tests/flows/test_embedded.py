"""A busy database is no dead server, and not for ever."""

import asyncio

import pytest

from kohort.flows import embedded
from kohort.flows.embedded import BusyIsNotDead


def answers(statuses):
    """Headers of the answers of an application that gives these statuses."""
    left = list(statuses)

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": left.pop(0), "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b""})

    async def ask():
        found = []

        async def send(message):
            if message["type"] == "http.response.start":
                found.append(dict(message["headers"]))

        app = BusyIsNotDead(application)
        for _ in statuses:
            await app({"type": "http"}, None, send)
        return found

    return asyncio.run(ask())


WAIT = {b"a": b"b", b"prefect-maintenance": b"true", b"retry-after": b"1"}


def test_only_a_busy_answer_says_that_it_is_worth_waiting():
    assert answers([200, 503, 500, 503]) == [{b"a": b"b"}, WAIT, {b"a": b"b"}, WAIT]


def test_what_stays_busy_is_given_up(monkeypatch):
    monkeypatch.setattr(embedded, "PATIENCE", 0.0)
    assert answers([503, 503]) == [{b"a": b"b"}, {b"a": b"b"}]


@pytest.mark.parametrize("status", [200, 503])
def test_a_client_of_prefect_waits(status, monkeypatch):
    """The header means to Prefect's client what it is meant to."""
    import httpx
    from prefect.client.base import PrefectHttpxSyncClient

    tried = []

    def answer(request):
        tried.append(request)
        if len(tried) < 5 and status == 503:
            headers = {"prefect-maintenance": "true", "retry-after": "0"}
            return httpx.Response(503, headers=headers, request=request)
        return httpx.Response(200, request=request)

    with PrefectHttpxSyncClient(
        transport=httpx.MockTransport(answer), enable_csrf_support=False
    ) as client:
        assert client.get("http://127.0.0.1/api/health").status_code == 200
    assert len(tried) == (5 if status == 503 else 1)
