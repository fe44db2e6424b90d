"""Where the databases differ, and why. No test of the contract decides by a database's name: it asks here."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Capabilities:
    """What one database does its own way.

    view:            how its SQL names the view message_state: a schema where there are schemas, else a prefix.
    key:             the Python type of a batch key: drivers that know no UUID give text.
    nul:             text can hold the character NUL; where it cannot, it is an invalid_argument.
    holder:          what queue_health calls another session, told the driver's connection and its application name.
    empties_parts:   purge_archive empties a part of the archive that is wholly old at once.
    rings_go_by_id:  once claim_wraparound has found something in a type, claim_batch goes by id there too.
    undoes_a_call:   a call that fails inside the caller's transaction undoes its own work, and the transaction goes on;
                     where it does not, the caller sets a savepoint before the call.
    keeps_savepoints: and that helps; where it does not, the caller's transaction is lost with the call.
    blank_endings:   names that differ in blanks at their end are different names; where they are not, such an ending is
                     an invalid_argument.
    waits:           wait_for_message can wait; where it cannot, it answers at once.
    """

    view: str
    key: type
    nul: bool
    holder: Callable[[Any, str], str]
    empties_parts: bool
    rings_go_by_id: bool
    undoes_a_call: bool
    keeps_savepoints: bool = True
    blank_endings: bool = True
    waits: bool = True


def _session_id(connection: Any) -> int:
    cursor = connection.cursor()
    cursor.execute("SELECT @@SPID")
    [(number,)] = cursor.fetchall()
    return int(number)


BY_DATABASE = {
    # An error there ends the transaction: only a rollback is possible, of the whole or to a savepoint.
    "postgresql": Capabilities(
        view="mq.message_state",
        key=uuid.UUID,
        nul=False,
        holder=lambda connection, name: name,
        empties_parts=True,
        rings_go_by_id=False,
        undoes_a_call=False,
    ),
    # A view of another session's application name needs the performance schema, which MariaDB has switched off.
    # TRUNCATE commits the caller's transaction. A second index on mq_ready, which order by id would need beside the
    # other, costs as much as the whole claim: a ring's messages stand in the order of their ids instead. The driver
    # could send NUL, the runner refuses it as everywhere.
    "mysql": Capabilities(
        view="mq_message_state",
        key=str,
        nul=False,
        holder=lambda connection, name: f"connection {connection.thread_id()},",
        empties_parts=False,
        rings_go_by_id=True,
        undoes_a_call=True,
    ),
    # Texts compare there as if padded with blanks. Nothing sleeps in PSQL: consumers wait for an event.
    "firebird": Capabilities(
        view="mq_message_state",
        key=str,
        nul=False,
        holder=lambda connection, name: f"attachment {connection.info.id},",
        empties_parts=False,
        rings_go_by_id=False,
        undoes_a_call=True,
        blank_endings=False,
        waits=False,
    ),
    # Names compare as if padded with blanks. An error in a procedure, where XACT_ABORT is on, ends the caller's whole
    # transaction: not even a savepoint helps. A ring as on MySQL, for the same reason.
    "sqlserver": Capabilities(
        view="mq.message_state",
        key=str,
        nul=False,
        holder=lambda connection, name: f"session {_session_id(connection)},",
        empties_parts=False,
        rings_go_by_id=True,
        undoes_a_call=False,
        keeps_savepoints=False,
        blank_endings=False,
    ),
}


# What executes a product's SQL in its place, and what it cannot do: its own lacks, and none of the product. Each reason
# with the tests that need it.
STAND_INS: dict[str, dict[str, set[str]]] = {
    # Told from @@VERSION. Tried: 4.3, https://babelfishpg.org.
    "Babelfish": {
        "reads lock hints and does not follow them: what passes over a locked row there waits for it": {
            "test_cancel_passes_over_what_is_being_claimed",
            "test_cancel_rolled_back_leaves_the_message_claimable",
            "test_claim_batch_skips_messages_that_another_session_is_claiming",
            "test_claim_wraparound_skips_what_another_session_is_claiming",
            "test_fail_without_a_key_passes_over_what_is_being_taken",
        },
        "leaves the values of OPENJSON escaped, and spoils what is not ASCII in STRING_ESCAPE": {
            "test_finish_batch_reads_an_error_that_begins_with_a_quote_as_a_json_string",
            "test_finish_batch_takes_any_other_error_as_it_stands",
            "test_finish_batch_cuts_an_error_at_4000_characters",
            "test_finish_batch_changes_nothing_for_one_bad_line_and_names_it",
            "test_a_body_comes_back_byte_for_byte_by_every_way",
            "test_a_list_of_failures_keeps_a_hostile_error",
            "test_send_batch_reads_a_line_that_begins_with_a_quote_as_a_json_string",
            "test_send_batch_reads_all_escapes_of_json",
            "test_send_batch_takes_any_other_line_as_it_stands",
            "test_send_batch_keeps_a_carriage_return_as_part_of_the_body",
            "test_send_message_and_send_batch_take_16_mib_too",
        },
        "measures a text in bytes of UTF-8, not of UTF-16, and walks it to find a character": {
            "test_a_body_of_16_mib_comes_back_byte_for_byte",
            "test_a_body_of_16_mib_and_a_byte_is_refused_by_every_way",
            "test_a_refused_call_leaves_the_session_usable",
        },
    },
}


def lack(stand_in: str, test: str) -> str:
    """Why a stand-in cannot run a test; '' when it can, and for the product itself."""
    return next((reason for reason, tests in STAND_INS.get(stand_in, {}).items() if test in tests), "")
