"""The project's tests: each runs in a transaction that is rolled back, and so do its messages."""

import json

from django.test import TestCase
from rowqueue.django.testing import run_sent, sent

from shop.jobs import place_order, send_mail
from shop.models import Order


class PlaceOrder(TestCase):
    def test_a_mail_is_sent_once(self) -> None:
        order = place_order("ada@example.org")
        assert [json.loads(row["body"]) for row in sent("email")] == [{"order": order.id}]
        outcomes = run_sent("email", send_mail)
        self.assertEqual([outcome.error for outcome in outcomes], [None])
        order.refresh_from_db()
        assert order.mailed == 1
        assert sent("email") == []

    def test_nothing_is_left_of_other_tests(self) -> None:
        assert sent("email") == []
        assert Order.objects.count() == 0

    def test_a_message_that_fails_says_why(self) -> None:
        place_order("ada@example.org")

        def broken(message: object) -> None:
            raise ValueError("no mail today")

        [outcome] = run_sent("email", broken)
        assert outcome.error == "ValueError: no mail today"
