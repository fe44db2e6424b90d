"""The differences between databases, with reasons. Contract tests use these values and never a database's name."""

import base64
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Sql = Callable[..., list[dict[str, Any]]]


def _drop_trigger(sql: Sql, table: str) -> None:
    sql(f"DROP TRIGGER mq_update ON {table}")


def _drop_sqlserver_trigger(sql: Sql, table: str) -> None:
    [row] = sql("SELECT name FROM sys.triggers WHERE parent_id = OBJECT_ID(%s)", f"dbo.[{table}]")
    sql(f"DROP TRIGGER {row['name']}")


def _drop_firebird_trigger(sql: Sql, table: str) -> None:
    [row] = sql("SELECT TRIM(rdb$trigger_name) AS name FROM rdb$triggers WHERE rdb$relation_name = %s", table)
    sql(f"DROP TRIGGER {row['name']}")


def _let_alter(table: str) -> list[str]:
    """As a text: Babelfish, which asks for no such right, cannot read it."""
    granted = f"GRANT ALTER ON {table} TO public".replace("'", "''")
    return [f"IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC (N'{granted}')"]


def _drop_mysql_trigger(sql: Sql, table: str) -> None:
    [row] = sql(
        "SELECT trigger_name AS name FROM information_schema.triggers"
        " WHERE event_object_schema = DATABASE() AND event_object_table = %s AND event_manipulation = 'UPDATE'",
        table,
    )
    sql(f"DROP TRIGGER {row['name']}")


def _raise_level(connection: Any, level: str) -> None:
    connection.cursor().execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")


def _raise_postgresql_level(connection: Any, level: str) -> None:
    connection.cursor().execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")


def _raise_sqlserver_level(connection: Any, level: str) -> None:
    connection.cursor().execute(f"SET TRANSACTION ISOLATION LEVEL {level}")


def _keeps_snapshots(sql: Sql) -> bool:
    return [row["Value"] for row in sql("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")] == ["ON"]


def _raise_firebird_level(connection: Any, level: str) -> None:
    from firebird.driver import Isolation, tpb

    connection.main_transaction.default_tpb = tpb(Isolation[level], 0)


@dataclass(frozen=True)
class Capabilities:
    """The characteristics of one database.

    view:            the view message_state as its SQL names it: with a schema if it has schemas, else with a prefix.
    key:             the Python type of a batch key: drivers without a UUID type return text.
    nul:             text can contain the character NUL; otherwise NUL raises invalid_argument.
    session_id:      the query for a session's number, and
    end_session:     the statement by which an administrator ends it.
    holder:          queue_health's name for another session, from the driver's connection and its application name.
    empties_parts:   purge truncates a partition of the archive whose messages are all of the queue and old.
    takes_by_id:     take_batch of a ring orders by id; otherwise by priority, as of other queues.
    undoes_a_call:   a call that fails in the caller's transaction rolls back only its own work; otherwise the caller
                     needs a savepoint before the call.
    keeps_savepoints: the savepoint helps; otherwise the caller's transaction is lost with the call.
    blank_endings:   names that differ only in trailing blanks are different; otherwise a trailing blank raises
                     an invalid_argument.
    waits:           wait_for_message can wait; otherwise it returns at once.
    sleeps_by_clock: its sleep ends by the server's clock; a clock that is set back makes it longer.
    live_locks:      which rows of group_lock are in use: others wait for a claim that deletes them.
    moment:          the type of a column for a date with a time.
    instant:         a time in UTC as a literal of its SQL.
    letters:         the type of a column for 40 characters of any kind.
    grants:          statements that let the queue and every login use a table.
    enum:            a statement before, and the type of a status that can be N, A, D or E; None: there are none.
    text:            the type of a column for short texts of any characters.
    quote:           a name as the database's SQL quotes it.
    opens:           the statements of a DBA that let the queue read and change a table, given as in SQL, and let every
                     caller may make a feed of it.
    values:          columns of each common type with a value: (type, the value in SQL, what a feed's JSON makes of it).
    fold:            an unquoted name as the catalog stores it.
    user:            a login as GRANT names it.
    own_table:       one of the queue's own tables, as SQL names it.
    longest_key:     the most characters of such a text in a primary key.
    uuid:            the type of a UUID, the SQL of a value, and its text in a message, in lower case.
    before_watching: the statements of a DBA that let every caller watch a table, given quoted.
    spoil_watching:  drops the update trigger of a watched table, given a session with all rights and the name.
    levels:          isolation levels at which a transaction has one snapshot, or may have one.
    raise_level:     sets the level of a connection's next transactions.
    sets_level:      a call sets READ COMMITTED for itself, at every level.
    changes_at:      whether replace and postpone work at these levels; otherwise they raise wrong_isolation.
    conflicts_at:    whether the server fails such a transaction with a conflict when it meets a row that is newer than
                     its snapshot; the repeated transaction works.
    computed:        a column that the server computes, given its name and the expression.
    sees_drops:      a procedure with its owner's rights can distinguish a dropped table from one that it may not see;
                     otherwise drop_feed needs rights on a dropped table too.
    """

    view: str
    key: type
    nul: bool
    session_id: str
    end_session: str
    holder: Callable[[Any, str], str]
    empties_parts: bool
    takes_by_id: bool
    undoes_a_call: bool
    text: str
    quote: Callable[[str], str]
    opens: Callable[[str], list[str]]
    values: tuple[tuple[str, str, Any], ...]
    keeps_savepoints: bool = True
    blank_endings: bool = True
    waits: bool = True
    sleeps_by_clock: bool = False
    live_locks: str = "1 = 1"
    fold: Callable[[str], str] = str
    user: Callable[[str], str] = str
    own_table: str = "mq.message"
    longest_key: int = 450
    uuid: str = "CHAR(36)"
    uuid_value: Callable[[str], str] = "'{}'".format
    uuid_told: Callable[[str], str] = str
    before_watching: Callable[[str], Sequence[str]] = lambda table: ()
    spoil_watching: Callable[[Sql, str], None] = _drop_trigger
    moment: str = "timestamp"
    instant: str = "'{:%Y-%m-%d %H:%M:%S}'"
    letters: str = "varchar(40)"
    grants: tuple[str, ...] = ("GRANT SELECT, UPDATE, DELETE ON {} TO PUBLIC",)
    enum: tuple[str, str] | None = None
    levels: tuple[str, ...] = ("REPEATABLE READ", "SERIALIZABLE")
    raise_level: Callable[[Any, str], None] = _raise_level
    sets_level: bool = False
    changes_at: bool = True
    conflicts_at: Callable[[Sql], bool] = lambda sql: False
    computed: str = "{} bigint GENERATED ALWAYS AS ({}) STORED"
    sees_drops: bool = True


def _between(first: str, last: str) -> Callable[[str], str]:
    """Quotes a name with these characters; the last one is doubled inside it."""
    return lambda name: first + name.replace(last, last * 2) + last


# Settings that all databases share.
_VALUES: tuple[tuple[str, str, Any], ...] = (
    ("smallint", "-32768", -32768),
    ("integer", "2147483647", 2147483647),
    ("bigint", "-9223372036854775808", -9223372036854775808),
    ("decimal(18,4)", "12345678901234.5000", "12345678901234.5000"),
    ("decimal(18,4)", "-0.0001", "-0.0001"),
    ("double precision", "0.1", 0.1),
    ("double precision", "-1.7976931348623157e308", -1.7976931348623157e308),
    ("double precision", "123456789.12345679", 123456789.12345679),
    ("char(3)", "'a''b'", "a'b"),
    ("date", "'2026-11-22'", "2026-11-22"),
)


UUID = uuid.UUID("9f8b1c1e-3c5a-4a57-8a0f-6f6f0b0d1a2b")


def _session_id(connection: Any) -> int:
    cursor = connection.cursor()
    cursor.execute("SELECT @@SPID")
    [(number,)] = cursor.fetchall()
    return int(number)


BY_DATABASE = {
    # An error ends the transaction: only a rollback is possible, of the whole or to a savepoint.
    "postgresql": Capabilities(
        view="mq.message_state",
        key=uuid.UUID,
        nul=False,
        session_id="SELECT pg_backend_pid()",
        end_session="SELECT pg_terminate_backend({})",
        holder=lambda connection, name: name,
        empties_parts=True,
        takes_by_id=False,
        undoes_a_call=False,
        sleeps_by_clock=True,
        instant="'{:%Y-%m-%d %H:%M:%S}+00:00'",
        enum=("CREATE TYPE {} AS ENUM ('N', 'A', 'D', 'E')", "{}"),
        text="varchar(200)",
        quote=_between('"', '"'),
        opens=lambda table: [f"GRANT SELECT, UPDATE, DELETE ON {table} TO PUBLIC"],
        values=(
            *_VALUES,
            ("numeric(30,0)", "123456789012345678901234567890", "123456789012345678901234567890"),
            ("real", "0.1", 0.1),
            ("text", "repeat('x', 70000)", "x" * 70_000),
            ("boolean", "true", True),
            ("time(3)", "'12:34:56.789'", "12:34:56.789"),
            ("timestamp", "'2026-11-22 12:34:56.789012'", "2026-11-22T12:34:56.789012"),
            ("timestamptz", "'2026-11-22 12:34:56.789012+05:30'", "2026-11-22T07:04:56.789012+00:00"),
            ("uuid", "'9f8b1c1e-3c5a-4a57-8a0f-6f6f0b0d1a2b'", "9f8b1c1e-3c5a-4a57-8a0f-6f6f0b0d1a2b"),
            ("bytea", r"'\x00ff' || convert_to(repeat('x', 100), 'UTF8')", b"\0\xff" + b"x" * 100),
            ("jsonb", """'{"a": [1, {"b": null}]}'""", {"a": [1, {"b": None}]}),
            ("integer[]", "'{1,2}'", [1, 2]),
            ("interval", "'1 day 2 hours'", "1 day 02:00:00"),
        ),
        fold=str.lower,
        before_watching=lambda table: [f"GRANT TRIGGER ON {table} TO PUBLIC"],
        longest_key=2_000,
        uuid="UUID",
        raise_level=_raise_postgresql_level,
        conflicts_at=lambda sql: True,
    ),
    # A view of another session's application name needs the performance schema, which MariaDB has switched off.
    # TRUNCATE commits the caller's transaction. A second index on mq_ready, which order by id would need beside the
    # other, costs as much as the whole claim: a ring's messages stand in the order of their ids instead. The driver
    # could send NUL; the runner refuses it on every database.
    "mysql": Capabilities(
        view="mq_message_state",
        key=str,
        nul=False,
        session_id="SELECT CONNECTION_ID()",
        end_session="KILL CONNECTION {}",
        holder=lambda connection, name: f"connection {connection.thread_id()},",
        empties_parts=False,
        takes_by_id=True,
        undoes_a_call=True,
        moment="datetime(6)",
        letters="varchar(40) CHARACTER SET utf8mb4",
        grants=("GRANT SELECT, UPDATE, DELETE ON {} TO mq_consumer, mq_operator",),
        enum=("", "enum('N', 'A', 'D', 'E')"),
        text="varchar(200) CHARACTER SET utf8mb4",
        quote=_between("`", "`"),
        opens=lambda table: [f"GRANT SELECT, UPDATE, DELETE ON {table} TO mq_consumer, mq_operator"],
        values=(
            *_VALUES,
            ("decimal(30,0)", "123456789012345678901234567890", "123456789012345678901234567890"),
            ("float", "0.1", 0.10000000149011612),
            ("bigint unsigned", "18446744073709551615", 18446744073709551615),
            ("longtext", "repeat('x', 70000)", "x" * 70_000),
            ("boolean", "true", 1),
            ("bit(5)", "b'101'", 5),
            ("year", "2026", 2026),
            ("enum('a', 'b\"')", "'b\"'", 'b"'),
            ("time(3)", "'12:34:56.789'", "12:34:56.789"),
            ("datetime(6)", "'2026-11-22 12:34:56.789012'", "2026-11-22T12:34:56.789012"),
            ("datetime", "'2026-11-22 12:34:56'", "2026-11-22T12:34:56"),
            # The servers of the tests have a zone of their own.
            ("timestamp(6) NULL", "from_unixtime(1795331096.789012)", "2026-11-22T07:04:56.789012+00:00"),
            ("longblob", "concat(x'00ff', repeat('x', 100))", b"\0\xff" + b"x" * 100),
            ("varbinary(9)", "'ab'", b"ab"),
        ),
        user=lambda login: f"{login}@'%'",
        own_table="mq_message",
        longest_key=768,
        before_watching=lambda table: [f"GRANT SELECT, TRIGGER ON {table} TO 'mq_owner'@'localhost', mq_operator"],
        spoil_watching=_drop_mysql_trigger,
        levels=("READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
        conflicts_at=_keeps_snapshots,
        sees_drops=False,
    ),
    # Texts compare there as if padded with blanks. Nothing sleeps in PSQL: consumers wait for an event.
    "firebird": Capabilities(
        view="mq_message_state",
        key=str,
        nul=False,
        session_id="SELECT CURRENT_CONNECTION FROM rdb$database",
        end_session="DELETE FROM mon$attachments WHERE mon$attachment_id = {}",
        holder=lambda connection, name: f"attachment {connection.info.id},",
        empties_parts=False,
        takes_by_id=False,
        undoes_a_call=True,
        text="varchar(200) CHARACTER SET UTF8",
        quote=_between('"', '"'),
        opens=lambda table: [f"GRANT SELECT, UPDATE, DELETE ON {table} TO PUBLIC"],
        # Its SQL reads numbers of 17 digits not quite right.
        values=(
            *(value for value in _VALUES if value[1] != "123456789.12345679"),
            ("double precision", "1e0 + 1e0 / 4503599627370496", 1.0000000000000002),
            ("float", "0.1", 0.1),
            ("boolean", "TRUE", True),
            ("time", "'12:34:56.789'", "12:34:56.7890"),
            ("timestamp", "'2026-11-22 12:34:56.789'", "2026-11-22T12:34:56.7890"),
            ("varchar(20) CHARACTER SET ISO8859_1", "'b\"ü'", 'b"ü'),
            ("varchar(8000) CHARACTER SET UTF8", "RPAD('', 8000, 'ä\"')", 'ä"' * 4000),
            ("varchar(20) CHARACTER SET NONE", "x'C3BC'", "ü"),
            ("varchar(20) CHARACTER SET NONE", "x'FC41'", "üA"),
            (
                "blob SUB_TYPE TEXT CHARACTER SET UTF8",
                "RPAD('', 8000, '\"x') || RPAD('', 8000, 'ü')",
                '"x' * 4000 + "ü" * 8000,
            ),
            ("blob", "x'00FF' || RPAD('', 8000, 'x')", b"\0\xff" + b"x" * 8000),
            ("char(16) CHARACTER SET OCTETS", "CHAR_TO_UUID('9f8b1c1e-3c5a-4a57-8a0f-6f6f0b0d1a2b')", UUID.bytes),
        ),
        blank_endings=False,
        waits=False,
        fold=str.upper,
        own_table="mq_message",
        longest_key=500,
        uuid="CHAR(16) CHARACTER SET OCTETS",
        uuid_value="CHAR_TO_UUID('{}')".format,
        uuid_told=lambda text: base64.b64encode(uuid.UUID(text).bytes).decode().lower(),
        spoil_watching=_drop_firebird_trigger,
        computed="{} bigint GENERATED ALWAYS AS ({})",
        letters="varchar(40) CHARACTER SET UTF8",
        levels=("SNAPSHOT",),
        raise_level=_raise_firebird_level,
        changes_at=False,
        conflicts_at=lambda sql: True,
    ),
    # Names compare as if padded with blanks. An error in a procedure, where XACT_ABORT is on, ends the caller's whole
    # transaction: not even a savepoint helps. A ring as on MySQL, for the same reason.
    "sqlserver": Capabilities(
        view="mq.message_state",
        key=str,
        nul=False,
        session_id="SELECT @@SPID",
        end_session="KILL {}",
        holder=lambda connection, name: f"session {_session_id(connection)},",
        empties_parts=False,
        takes_by_id=True,
        undoes_a_call=False,
        live_locks="NOT EXISTS (SELECT * FROM mq.group_freed AS f WHERE f.id = mq.group_lock.id)",
        longest_key=450,
        uuid="uniqueidentifier",
        before_watching=_let_alter,
        spoil_watching=_drop_sqlserver_trigger,
        computed="{} AS ({}) PERSISTED",
        text="nvarchar(200)",
        quote=_between("[", "]"),
        opens=lambda table: [f"GRANT SELECT, UPDATE, DELETE ON {table} TO public"],
        values=(
            *_VALUES,
            ("decimal(30,0)", "123456789012345678901234567890", "123456789012345678901234567890"),
            ("real", "CAST(0.1 AS real)", 0.1),
            ("money", "-922337203685477.5808", "-922337203685477.5808"),
            ("tinyint", "255", 255),
            ("nvarchar(max)", "REPLICATE(CAST(N'x' AS nvarchar(max)), 70000)", "x" * 70_000),
            ("varchar(20)", "'a/\"b\\'", 'a/"b\\'),
            ("xml", "N'<a>1</a>'", "<a>1</a>"),
            ("bit", "1", True),
            ("time(3)", "'12:34:56.789'", "12:34:56.789"),
            ("datetime", "'2026-11-22T12:34:56.790'", "2026-11-22T12:34:56.790"),
            ("smalldatetime", "'2026-11-22T12:34:00'", "2026-11-22T12:34:00"),
            ("datetime2(6)", "'2026-11-22T12:34:56.789012'", "2026-11-22T12:34:56.789012"),
            ("datetime2(0)", "'2026-11-22T12:34:56'", "2026-11-22T12:34:56"),
            ("datetimeoffset(6)", "'2026-11-22T12:34:56.789012+05:30'", "2026-11-22T07:04:56.789012+00:00"),
            ("uniqueidentifier", "'9F8B1C1E-3C5A-4A57-8A0F-6F6F0B0D1A2B'", "9f8b1c1e-3c5a-4a57-8a0f-6f6f0b0d1a2b"),
            ("varbinary(max)", "0x00FF61", b"\0\xffa"),
            ("binary(3)", "0x00FF61", b"\0\xffa"),
        ),
        keeps_savepoints=False,
        blank_endings=False,
        moment="datetime2(6)",
        letters="nvarchar(40)",
        grants=("GRANT SELECT, UPDATE, DELETE ON {} TO public",),
        raise_level=_raise_sqlserver_level,
        sets_level=True,
    ),
}


# Stand-ins that run a product's SQL, and what they cannot do although the product can. Each reason
# with the tests that need it, or one case of a test.
STAND_INS: dict[str, dict[str, set[str]]] = {
    # Recognized by @@VERSION. Tried: 4.3, https://babelfishpg.org.
    "Babelfish": {
        "reads lock hints and does not follow them: what passes over a locked row there waits for it": {
            "test_cancel_skips_a_message_that_is_being_claimed",
            "test_cancel_rolled_back_leaves_the_message_claimable",
            "test_claim_batch_skips_messages_that_another_session_is_claiming",
            "test_claim_wraparound_skips_what_another_session_is_claiming",
            "test_of_two_claims_of_one_consumer_at_once_the_one_that_went_further_counts",
            "test_consumers_that_race_round_a_ring_share_its_messages",
            "test_claims_at_the_same_time_serve_different_groups",
            "test_a_claim_takes_all_that_others_have_not_locked",
            "test_claims_at_the_same_time_share_a_single_group",
            "test_count_attempt_skips_a_message_that_is_being_taken",
            "test_max_active_holds_for_takes_and_their_transactions",
            "test_max_active_holds_through_rollbacks",
            "test_rate_limits_finish_batch_and_takes",
            "test_group_max_active_holds_for_finish_batch_and_takes",
            "test_purge_skips_messages_that_are_being_claimed",
            "test_rescue_expired_skips_a_batch_that_is_being_finished",
            "test_rescue_expired_skips_a_lease_that_is_being_extended",
            "test_take_batch_hides_its_messages_from_others_until_it_ends",
            "test_a_sender_of_a_dedup_key_waits_for_a_take_and_sends_when_that_commits",
            "test_claims_pass_over_what_another_is_claiming",
            "test_publish_feed_skips_rows_that_a_writer_has_locked",
            "test_claims_pass_over_rows_that_a_writer_has_locked",
            "test_senders_and_finishers_do_not_wait_for_a_claim_of_thousands",
            "test_a_claim_skips_a_head_that_an_open_transaction_cancels",
            "test_a_policy_does_not_become_ordered_while_a_sender_is_open",
            "test_a_message_whose_sender_commits_late_is_claimed_within_seconds",
            "test_claimers_finishers_and_producers_get_no_conflict_and_lose_nothing",
            "test_eight_consumers_lose_nothing_and_finish_nothing_twice",
            "test_every_message_is_finished_though_consumers_are_killed_while_producers_send",
            "test_messages_of_a_take_that_rolls_back_are_claimed_within_seconds",
            "test_senders_consumers_and_operators_together_get_no_error_and_lose_nothing",
            "test_a_message_that_is_being_claimed_is_not_waited_for",
            "test_a_change_can_be_rolled_back_and_others_pass_over_it",
            "test_a_rolled_back_schedule_is_due_again",
            "test_update_message_skips_a_message_that_is_being_claimed",
            "test_update_message_skips_a_message_that_is_being_changed",
            "test_a_claim_skips_a_message_that_is_being_moved",
            "test_messages_that_are_moved_while_they_are_claimed_are_claimed_once",
            "test_claim_any_finds_what_is_put_back_and_what_commits_late",
            "test_claim_any_continues_with_the_next_queue_when_others_are_claiming",
            "test_two_sessions_claim_every_message_of_many_queues_once",
            "test_release_consumer_and_completes_of_the_same_batches_never_do_both",
            "test_a_message_is_not_rescued_while_the_transaction_of_its_step_is_open",
            "test_a_step_waits_for_a_rescue_and_is_refused",
            "test_a_held_message_does_not_keep_others_from_being_rescued",
            "test_a_finish_waits_for_a_step_that_is_being_saved",
            "test_the_effect_of_each_step_happens_once_though_leases_end_and_consumers_are_killed",
            "test_a_death_waits_for_a_change_in_an_open_transaction",
            *(
                f"test_turning_it_on_waits_for_a_dead_letter_that_is_being_redriven_or_deleted[{case}]"
                for case in ("redrive-commit", "cancel-commit")
            ),
        },
        "leaves the values of OPENJSON escaped, and spoils what is not ASCII in STRING_ESCAPE": {
            "test_text_keys_report_every_value",
            *(
                f"test_hostile_names_and_texts_are_stored_unchanged[{case}]"
                for case in (
                    *("line ends", "two-byte characters", "four-byte characters", "joined emoji", "not characters"),
                    *("combining characters", "right to left", "same but for case and accents"),
                )
            ),
            "test_finish_batch_stores_every_error_unchanged_and_no_text_touches_a_neighbour",
            "test_finish_batch_takes_any_json_of_an_outcome",
            "test_finish_batch_cuts_an_error_at_4000_characters",
            "test_finish_batch_changes_nothing_for_one_bad_line_and_names_it",
            "test_the_members_of_an_object_are_read_as_python_reads_them",
            "test_other_texts_than_flat_objects_with_unique_names_are_refused",
            "test_objects_of_every_kind_are_read_as_python_reads_them",
            "test_ten_thousand_objects_are_read_as_python_reads_them",
            "test_every_way_to_claim_returns_a_body_byte_for_byte",
            "test_a_list_of_failures_keeps_a_hostile_error",
            "test_send_batch_reads_a_line_that_begins_with_a_quote_as_a_json_string",
            "test_send_batch_reads_all_escapes_of_json",
            "test_send_batch_decodes_a_json_string_with_blanks_after_it",
            "test_send_batch_gives_its_options_to_every_message",
            "test_claim_any_reads_a_list_as_lists_are_read",
            "test_a_list_of_types_has_1_to_1000_names",
            "test_a_batch_of_bodies_arrives_unchanged",
            "test_a_batch_is_claimed_finished_and_followed_by_the_next",
            "test_send_batch_sends_any_other_line_unchanged",
            "test_send_batch_refuses_all_for_one_bad_line_and_names_it",
            "test_send_batch_treats_an_escaped_nul_as_it_treats_a_nul",
            "test_send_batch_measures_the_body_and_not_its_json",
            "test_send_batch_keeps_a_carriage_return_as_part_of_the_body",
            "test_send_message_and_send_batch_take_16_mib_too",
            "test_any_error_text_is_kept",
            "test_exceptions_decide_the_outcome_of_a_message",
            "test_a_mail_that_is_sent_twice_is_delivered_once_and_what_is_no_mail_is_dead",
            "test_keys_of_several_columns_and_types_find_their_rows_again",
            "test_send_with_sets_all_options",
            "test_update_message_changes_what_is_given_and_keeps_the_rest",
            "test_no_text_of_an_error_touches_another_row",
            *(
                f"test_a_value_on_the_edge_of_its_limit_is_taken[{procedure}-headers]"
                for procedure in ("publish_with", "send_batch", "send_with", "set_schedule", "update_message")
            ),
        },
        "reads a number in JSON as its value: 1e3 as 1000": {"test_a_number_is_a_whole_number"},
        "makes NULL of any time with a zone in TRY_CAST, so its T-SQL has CAST": {
            *(f"test_a_time_needs_its_zone[{time}]" for time in ("2026-02-30T08:30:00Z", "2026-11-27T25:00:00Z")),
        },
        "gives a column that a function returns the collation of the database": {
            "test_groups_that_differ_in_case_accent_or_blank_have_places_of_their_own",
        },
        "tells no right on a table whose name holds a quote": {
            "test_names_that_need_quotes_are_taken_as_they_are",
        },
        "spoils the transaction by any error in a procedure that another calls, whatever XACT_ABORT is there": {
            "test_a_row_that_the_table_will_not_have_done_fails_alone",
            "test_a_row_that_the_table_will_not_have_active_does_not_stop_the_others",
            "test_a_row_that_the_table_will_not_have_deleted_fails_alone",
        },
        "makes NULL of an empty text in STRING_ESCAPE": {
            "test_a_null_in_a_row_without_a_key_is_a_value_like_any",
        },
        "measures a text in bytes of UTF-8, not of UTF-16, and walks it to find a character": {
            "test_a_body_of_16_mib_comes_back_byte_for_byte",
            "test_a_body_of_16_mib_and_a_byte_is_refused_by_every_way",
            "test_send_batch_names_the_line_of_a_body_that_is_too_big",
            "test_a_refused_call_leaves_the_session_usable",
            *(
                f"test_a_value_beyond_its_limit_is_refused_and_nothing_changes[{case}]"
                for case in (
                    *(f"{name}-body" for name in ("publish", "publish_with", "send", "send_message", "send_with")),
                    *("set_schedule-body", "update_message-body", "set_result-result", "save_step-value"),
                    *(f"{name}-headers" for name in ("publish_with", "send_batch", "send_message", "send_with")),
                    *("set_schedule-headers", "update_message-headers", "report_consumer-handling"),
                )
            ),
            "test_bad_arguments_are_refused_and_change_nothing[wrong9-headers:]",
            "test_the_longest_headers_have_the_topic_in_them",
            "test_a_bad_argument_is_refused_even_if_no_queue_is_bound[True-body-body: ]",
            "test_a_bad_argument_is_refused_even_if_no_queue_is_bound[False-body-body: ]",
        },
        "has no WAITFOR": {
            "test_wait_for_message_returns_when_the_time_is_up",
            "test_wait_for_message_returns_soon_after_another_session_sends",
            "test_a_write_wakes_waiting_consumers",
            "test_wait_for_message_returns_when_the_sender_commits_and_not_before",
            "test_wait_for_message_returns_when_a_delayed_message_is_due",
            "test_wait_for_message_returns_when_a_lease_runs_out",
            "test_wait_for_message_returns_when_a_paused_queue_is_resumed",
            "test_wait_for_any_returns_when_the_time_is_up",
            "test_wait_for_any_returns_soon_after_another_session_sends_to_any",
            "test_wait_for_any_returns_when_a_queue_is_resumed_or_a_message_is_due",
        },
        "gives indexes names of its own, has no level of compatibility and does not tell who has a transaction": {
            "test_queue_health_finds_nothing_bad_in_a_fresh_installation",
            "test_every_index_is_recorded",
            "test_queue_health_names_each_index_that_is_missing",
            "test_the_core_alone_works_and_has_nothing_of_an_area",
            "test_queue_health_shows_an_open_transaction_and_who_holds_it",
            "test_apply_then_doctor_then_uninstall",
            "test_doctor_names_what_is_missing_or_changed",
        },
        "knows no isolation level above READ COMMITTED but its own": {
            "test_a_serializable_writer_does_not_block_a_subscription",
            "test_callers_of_a_higher_isolation_level_claim_and_keep_their_level",
            "test_senders_at_serializable_stop_nobody",
            "test_a_send_decides_by_the_message_that_has_the_key_now",
            "test_create_feed_continues_above_the_numbers_that_are_in_the_table_now",
            "test_the_language_and_the_level_of_the_session_change_nothing",
        },
        "does not know DELETED inside a CASE of an OUTPUT": {
            "test_a_ring_is_scanned_in_steps_of_a_thousand",
            "test_a_call_is_one_with_the_callers_transaction[claim_wraparound-plain]",
            "test_a_call_that_fails_halfway_changes_nothing[claim_wraparound-plain]",
            "test_a_call_joins_the_callers_transaction_and_a_rollback_undoes_it[claim_wraparound]",
            "test_nothing_is_seen_of_a_call_before_its_transaction_commits[claim_wraparound]",
        },
        "crashes, with all sessions, when several consumers race in one ordered queue": {
            "test_eight_consumers_of_few_groups_get_no_deadlock",
            "test_groups_keep_their_order_through_failures_crashes_and_cancels",
            "test_no_group_is_lost_when_finishing_races_with_claiming",
            "test_the_last_message_of_a_group_is_not_left_behind_when_its_ticket_is_dropped_as_its_head_finishes",
        },
        "does not tell all objects and rights in its catalog": {
            "test_all_objects_have_one_owner_and_few_run_as_anybody_but_their_caller",
            "test_each_procedure_is_granted_to_the_roles_of_the_contract_and_nothing_else_to_anybody",
            "test_of_the_schema_the_roles_may_read_the_texts_alone",
            "test_every_procedure_has_the_arguments_and_results_of_the_contract",
        },
        "asks the caller for the right to what a procedure calls, though both have one owner": {
            "test_a_writer_needs_no_right_on_the_queue",
            "test_temporary_tables_of_the_caller_are_not_used",
            "test_arguments_are_values",
            "test_only_a_user_who_may_read_a_table_hears_of_its_changes",
            "test_a_role_may_call_what_the_contract_gives_it",
            "test_claiming_and_finishing_need_the_rights_at_each_call",
            "test_an_operator_cannot_change_a_table_without_a_right_on_it",
            "test_claims_of_another_table_are_out_of_reach_of_ones_own",
            "test_only_users_with_rights_on_the_table_can_read_or_publish_a_feed",
            "test_a_role_may_call_what_the_contract_gives_it_and_nothing_else",
            "test_a_role_gets_the_same_errors_as_the_owner",
            "test_the_roles_together_can_do_a_messages_whole_life",
            "test_user_with_the_consumer_role_alone_can_consume",
            "test_each_role_of_the_queue_can_check_the_installation",
        },
        "knows no MERGE": {
            "test_a_merge_is_reported_by_its_actions",
            "test_an_empty_merge_reports_nothing",
        },
        "doubles quotes in QUOTENAME": {
            "test_any_name_of_a_table_and_a_column_will_do[quotes]",
            "test_names_that_need_quotes_are_taken_exactly[backslashes]",
        },
        "does not keep all names as they are": {
            *(
                f"test_any_name_of_a_table_and_a_column_will_do[{case}]"
                for case in ("statement", "brackets", "letters")
            ),
            *(
                f"test_names_that_need_quotes_are_taken_exactly[{case}]"
                for case in ("blanks and case", "quotes", "brackets and dots", "statement", "unicode")
            ),
        },
        "has dbo belong to a role, so that no table in it is its caller's": {
            *(f"test_names_that_need_quotes_are_taken_exactly[{case}]" for case in ("reserved words", "placeholders")),
            "test_list_feeds_shows_the_position_of_each_consumer",
        },
        "has no base64": {"test_a_row_is_json_with_every_common_type"},
        "has no security policies": {
            "test_a_table_with_a_security_policy_is_no_polling_table_and_a_feed_of_what_is_seen",
        },
        "cannot run a procedure as its owner, and has no other right than the caller's on his tables": {
            "test_a_consumer_of_a_feed_needs_its_own_rights_and_loses_it_with_them",
            "test_the_trigger_of_a_table_of_another_owner_may_send_and_nothing_else",
            "test_creating_a_feed_needs_the_right_to_change_the_table",
            "test_a_table_of_another_owner_reports_changes_of_writers_without_rights_on_the_queue",
        },
        "takes seconds for what a session calls for the first time, and so long that leases and patience run out": {
            "test_lost_batch_is_not_finished_and_its_rest_not_started",
            "test_neighbours_in_the_batch_and_heartbeats_do_not_wait_for_the_transaction_of_a_step",
            "test_memory_stays_flat_over_a_long_backlog",
            "test_transaction_finishes_a_busy_queue_with_several_workers",
            "test_the_quick_start_delivers_retries_discards_and_redrives",
            "test_a_demo_stopped_in_the_middle_leaves_nothing_claimed_and_the_next_one_works",
            "test_bench_measures_and_leaves_nothing",
            "test_send_message_is_claimed_once_it_is_due",
            "test_take_batch_finds_messages_that_become_ready_below_the_mark_of_earlier_takes",
        },
        "cannot grant rights on a database, nor make a user its owner": {
            "test_objects_of_the_same_name_in_the_callers_schema_are_not_used",
            "test_the_installation_can_be_done_by_the_owner_of_a_database_who_is_no_administrator",
        },
    },
}


def lack(stand_in: str, test: str, case: str) -> str:
    """Why a stand-in cannot run a test or a case of it; '' if it can, and for the product itself."""
    names = {test, f"{test}[{case}]"}
    return next((reason for reason, tests in STAND_INS.get(stand_in, {}).items() if names & tests), "")
