-- Less to write for a message: the index by id holds only rows that need it. See docs/decisions/0019_postgresql_hot_path.md.

ALTER TABLE mq.ready ADD COLUMN by_id boolean;

COMMENT ON COLUMN mq.ready.by_id IS 'true: found by its id alone, as the messages of a ring, tickets, and what stands elsewhere than it was sent to. NULL: it stands at its message''s own priority and run_at.';

-- Tickets, and what has come back after an attempt.
UPDATE mq.ready SET by_id = true
WHERE attempts > 0 OR type IN (SELECT type FROM mq.queue WHERE grouped);

DROP INDEX mq.ready_ring;

CREATE INDEX ready_by_id ON mq.ready (type, id) WHERE by_id;

CREATE TABLE mq.ring_type (
    type text COLLATE "C" PRIMARY KEY,
    senders_before xid8,
    last_scan boolean NOT NULL,
    priority integer,
    run_at timestamptz,
    id bigint,
    complete boolean NOT NULL
);

COMMENT ON TABLE mq.ring_type IS 'Types that claim_wraparound was called for: their senders set by_id. senders_before: transactions with a lower number may have sent without it; priority, run_at, id: how far the scan for such messages has come (see move_to_ring); complete: there are none left.';

-- As long as it is short, the list of a batch is in its row. A longer one is not compressed: pglz took a tenth of the time of a batch of 1,000.
ALTER TABLE mq.batch ALTER COLUMN ids SET STORAGE EXTERNAL;

-- What these functions return cannot be changed in place.
DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc WHERE pronamespace = 'mq'::regnamespace AND proname IN ('claim', 'hold', 'lock_ready')
    LOOP
        EXECUTE format('DROP FUNCTION %s', v_function);
    END LOOP;
END
$$;
