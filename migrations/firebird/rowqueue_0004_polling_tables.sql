-- Polling tables: which rows of a user's table are claimed. The structure of that table is not changed. See
-- docs/decisions/0013_polling_tables.md.

CREATE DOMAIN mq_ident AS varchar(16000) CHARACTER SET OCTETS;
CREATE DOMAIN mq_status AS varchar(1000) CHARACTER SET UTF8;

COMMENT ON DOMAIN mq_ident IS 'Values of columns as text, each after its length in bytes: 2:17 is 17, - is NULL.';

CREATE SEQUENCE mq_polled_id;

CREATE TABLE mq_polled (
    name mq_name NOT NULL,
    id bigint NOT NULL,
    table_name varchar(63) CHARACTER SET UTF8 NOT NULL,
    table_owner varchar(63) CHARACTER SET UTF8 NOT NULL,
    key_columns mq_text,
    ident_columns mq_text NOT NULL,
    ident_types mq_text NOT NULL,
    order_column varchar(63) CHARACTER SET UTF8,
    status_column varchar(63) CHARACTER SET UTF8,
    ready_value mq_status,
    active_value mq_status,
    done_value mq_status,
    error_value mq_status,
    on_complete varchar(6) CHARACTER SET ASCII NOT NULL,
    late_seconds integer,
    equal_rows smallint NOT NULL,
    max_attempts smallint NOT NULL,
    place varchar(8000) CHARACTER SET OCTETS,
    place_ident mq_ident,
    copies integer,
    scanned_at timestamp,
    consumer mq_name,
    CONSTRAINT mq_polled_pk PRIMARY KEY (name),
    CONSTRAINT mq_polled_on_complete CHECK (on_complete IN ('keep', 'delete'))
);

COMMENT ON TABLE mq_polled IS 'Adopted tables. ident_columns: the columns that identify a row, with their types when the table was adopted. place: the position of the claims, if the shape of the table has one. A claim locks the row, so claims of one table run one after the other.';

CREATE UNIQUE INDEX mq_polled_by_id ON mq_polled (id);

CREATE TABLE mq_polled_batch (
    batch_key mq_key NOT NULL,
    lease_until timestamp NOT NULL,
    lease_seconds integer NOT NULL,
    name mq_name NOT NULL,
    consumer mq_name NOT NULL,
    CONSTRAINT mq_polled_batch_pk PRIMARY KEY (batch_key)
);

COMMENT ON TABLE mq_polled_batch IS 'One row per claim of rows. The transaction that deletes it owns the rows that the claim held.';

CREATE INDEX mq_polled_batch_lease ON mq_polled_batch (name, lease_until);

CREATE SEQUENCE mq_polled_row_id;

CREATE TABLE mq_polled_row (
    id bigint NOT NULL,
    batch_key mq_key,
    run_at timestamp NOT NULL,
    ident_hash bigint NOT NULL,
    attempts smallint NOT NULL,
    active smallint NOT NULL,
    state varchar(1) CHARACTER SET ASCII NOT NULL,
    name mq_name NOT NULL,
    ident mq_ident NOT NULL,
    key_json mq_text NOT NULL,
    consumer mq_name,
    error mq_error,
    CONSTRAINT mq_polled_row_pk PRIMARY KEY (id)
);

COMMENT ON TABLE mq_polled_row IS 'Rows of adopted tables that are claimed (A), wait for a retry (N) or are dead (E). active: their status is active_value.';

CREATE INDEX mq_polled_row_ident ON mq_polled_row (name, ident_hash);
CREATE INDEX mq_polled_row_active ON mq_polled_row (name, active);
CREATE INDEX mq_polled_row_batch ON mq_polled_row (batch_key);
CREATE INDEX mq_polled_row_due ON mq_polled_row (name, state, run_at, id);

CREATE TABLE mq_polled_mark (
    name mq_name NOT NULL,
    seen_at timestamp NOT NULL,
    place varchar(8000) CHARACTER SET OCTETS NOT NULL,
    CONSTRAINT mq_polled_mark_pk PRIMARY KEY (name, seen_at)
);

COMMENT ON TABLE mq_polled_mark IS 'For tables without a status column and with on_complete keep: the highest order value at the time seen_at.';

-- Scratch tables of one call: only its transaction sees their rows, which disappear when it ends.
CREATE GLOBAL TEMPORARY TABLE mq_polled_taken (
    id bigint NOT NULL,
    content mq_text,
    CONSTRAINT mq_polled_taken_pk PRIMARY KEY (id)
) ON COMMIT DELETE ROWS;

COMMENT ON TABLE mq_polled_taken IS 'The rows that a claim has found, as JSON, until the caller has fetched them.';

CREATE GLOBAL TEMPORARY TABLE mq_polled_seen (
    ident_hash bigint NOT NULL,
    ident mq_ident NOT NULL,
    copies integer NOT NULL
) ON COMMIT DELETE ROWS;

COMMENT ON TABLE mq_polled_seen IS 'Equal rows that a claim must still skip because they are already claimed.';

CREATE INDEX mq_polled_seen_hash ON mq_polled_seen (ident_hash);

CREATE GLOBAL TEMPORARY TABLE mq_polled_write (
    id bigint NOT NULL,
    kind varchar(1) CHARACTER SET ASCII NOT NULL,
    retry integer,
    from_status varchar(1) CHARACTER SET ASCII,
    to_status varchar(1) CHARACTER SET ASCII,
    outcome varchar(1) CHARACTER SET ASCII,
    error mq_error,
    CONSTRAINT mq_polled_write_pk PRIMARY KEY (id)
) ON COMMIT DELETE ROWS;

COMMENT ON TABLE mq_polled_write IS 'The planned and the actual result for each row of a batch.';
