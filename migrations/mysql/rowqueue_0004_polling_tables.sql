-- Polling tables: which rows of a user's table are claimed. The structure of that table is not changed. See
-- docs/decisions/0013_polling_tables.md.

-- An empty table_schema: the table is in this database. ident_columns: the columns that identify a row, as they were when
-- the table was adopted. All columns are data: each call composes its statements again from the catalog that the caller
-- sees.

CREATE TABLE IF NOT EXISTS mq_polled (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    table_schema varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    table_name varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    ident_columns longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_columns text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    order_column text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    status_column text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ready_value text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    active_value text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    done_value text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error_value text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    on_complete varchar(7) CHARACTER SET ascii NOT NULL,
    late_seconds int,
    equal_rows tinyint NOT NULL,
    max_attempts smallint NOT NULL,
    key_index varchar(64) CHARACTER SET utf8mb4,
    claim_index varchar(64) CHARACTER SET utf8mb4,
    place longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    place_hash binary(32),
    copies bigint,
    scanned_at datetime(6),
    counted_at datetime(6),
    adopted_by varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (name),
    CHECK (on_complete IN ('keep', 'delete'))
) ENGINE = InnoDB COMMENT = 'Adopted tables. place: the position of the claims, if the shape of the table has one. A claim locks the row, so claims of one table run one after the other. adopted_by is used only if mq_owner may not read the rights of accounts.';

CREATE TABLE IF NOT EXISTS mq_polled_batch (
    batch_key varchar(36) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    lease_until datetime(6) NOT NULL,
    lease_seconds int NOT NULL,
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (batch_key),
    KEY polled_batch_lease (name, lease_until)
) ENGINE = InnoDB COMMENT = 'One row per claim of rows. The session that deletes it owns the rows that the claim held.';

-- ident: the values that identify the row, in digits, separated by commas; N stands for NULL. place and copies: the
-- position of the claim after this row.
CREATE TABLE IF NOT EXISTS mq_polled_row (
    id bigint NOT NULL AUTO_INCREMENT,
    batch_key varchar(36) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    run_at datetime(6) NOT NULL,
    ident_hash binary(32) NOT NULL,
    attempts smallint NOT NULL,
    active tinyint NOT NULL,
    state char(1) CHARACTER SET ascii NOT NULL,
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    ident longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    key_json longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    place longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    copies bigint,
    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id),
    KEY polled_row_ident (name, ident_hash),
    KEY polled_row_batch (batch_key),
    KEY polled_row_due (name, state, run_at)
) ENGINE = InnoDB COMMENT = 'Rows of adopted tables that are claimed (A), wait for a retry (N) or are dead (E). active: their status is active_value.';

CREATE TABLE IF NOT EXISTS mq_polled_mark (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    seen_at datetime(6) NOT NULL,
    place longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (name, seen_at)
) ENGINE = InnoDB COMMENT = 'For tables without a status column and with on_complete keep: the highest order value at the time seen_at.';
