-- pick: move up to @size ready messages of a type from the ready table under a batch key, in claim order; expired claims are
--       rescued and due messages promoted on the way.
-- Arguments:   @type, @size, @take (1: the caller's transaction may be long: see pick_ordered), @batch_key
-- Returns:     @count: how many rows of mq.claimed have that key now
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.pick N'email', 10, 0, @batch_key, @count OUTPUT;
--
-- Low-water marks. What is deleted stays in the index until the ghost cleanup comes by, and under row versioning as long as a
-- snapshot is open: a claim that starts at the front of the index scans every message done since. So claims start where earlier
-- claims began to find something: mq.mark holds one such place per priority. Each mark starts a segment that ends before the next
-- mark, and before the first mark lies one more segment. So priorities without a mark are scanned as well, from their start.
--
-- No message is passed over for long. What is put back or becomes due below a mark lowers it. Two messages can still appear below a
-- mark unseen: one whose sender commits late, and one whose take rolls back. For the first, no segment starts later than a second
-- ago. For both, the first claim of each second is a full scan: it ignores the marks and reads the type from its very start. After a
-- full scan that took long, where many deleted rows lie, the next one waits ten times as long, at most 5 seconds.
--
-- READPAST passes over rows that others have locked: whoever reads marks, batches or delayed messages here must not wait for them
-- either. READCOMMITTEDLOCK, because under READ_COMMITTED_SNAPSHOT READPAST would do nothing.

CREATE OR ALTER PROCEDURE mq.pick
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- A mark is renewed when the front has moved by so many ids.
    DECLARE @stride bigint = 1000;
    -- Every mark costs a statement in each claim that comes short. Further priorities are claimed without marks.
    DECLARE @marks int = 8;
    -- Milliseconds. A full scan that took so long and found nothing has read deleted rows: idle consumers need not do it all the time.
    DECLARE @long_scan int = 5;
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    DECLARE @rescue int = CASE @take WHEN 1 THEN 1 ELSE 20 END;
    DECLARE @promote int = CASE WHEN @take = 1 THEN @size WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END;
    DECLARE @start datetime2(7) = '1900-01-01', @now datetime2(7) = SYSUTCDATETIME(), @pause int;
    DECLARE @second_ago datetime2(7) = DATEADD(SECOND, -1, @now), @lowered_to datetime2(7) = '9999-12-31';
    DECLARE @ordered bit, @full_scan bit = 1, @marks_changed bit = 0;
    DECLARE @n bigint, @scanned_at datetime2(7), @promoted_to datetime2(7), @rescued bigint, @moved int, @first_run_at datetime2(7);
    DECLARE @priority int = -32769, @before int, @mark_run_at datetime2(7), @mark_id bigint, @from_run_at datetime2(7), @from_id bigint;
    DECLARE @left int = @size, @took int;
    DECLARE @found mq.places;

    SET @count = 0;
    SELECT @ordered = ordered FROM mq.policy(@type);
    SELECT TOP (1) @n = n, @scanned_at = scanned_at, @promoted_to = promoted_to
    FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
    WHERE type = @type
    ORDER BY n DESC, priority, run_at, id;
    -- A full scan may be noted up to 5 seconds ahead; more, or a promotion ahead, means that the clock was set back.
    IF @now BETWEEN DATEADD(SECOND, -5, @scanned_at) AND DATEADD(SECOND, 1, @scanned_at) AND @promoted_to <= @now
        SET @full_scan = 0;
    ELSE
    BEGIN
        SET @promoted_to = @start;
        IF EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
            EXEC mq.rescue @type, @rescue, @rescued OUTPUT;
    END;

    IF EXISTS (
        SELECT * FROM mq.delayed WITH (READPAST, READCOMMITTEDLOCK)
        WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
    )
    BEGIN
        EXEC mq.promote @type, @promoted_to, @now, @promote, @ordered, @moved OUTPUT, @first_run_at OUTPUT;
        SELECT @promoted_to = CASE WHEN @moved < @promote THEN @now ELSE @start END,
            @lowered_to = COALESCE(@first_run_at, @lowered_to);
        IF EXISTS (
            SELECT * FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @type AND n = @n AND run_at >= @lowered_to AND (run_at > @start OR id > 0)
        )
            SET @marks_changed = 1;
    END
    ELSE
        SET @promoted_to = @now;

    IF @ordered = 1
    BEGIN
        EXEC mq.pick_ordered @type, @size, @take, @batch_key, @count OUTPUT;
        IF @full_scan = 1 AND @count > 0
        BEGIN
            -- A ticket may appear anywhere: the one mark is the very start, and tells when the last full scan was.
            INSERT INTO @found (priority, run_at, id) VALUES (-32768, @start, 0);
            EXEC mq.renew_marks @type, @n, @now, @start, @start, 1, @found;
        END;
        RETURN;
    END;

    -- The first segment begins at the very start, and that of a full scan is the only one.
    WHILE @left > 0 AND @priority < 32768
    BEGIN
        SET @before = 32768;
        IF @full_scan = 0
            SELECT TOP (1) @before = priority, @mark_run_at = run_at, @mark_id = id
            FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @type AND n = @n AND priority > @priority
            ORDER BY priority, run_at, id;
        EXEC mq.take_ready @type, @priority, @from_run_at, @from_id, @before, @left, @batch_key, @took OUTPUT;
        SET @left = @left - @took;
        -- The next segment begins at the mark, or before it, where a message may have appeared since.
        SET @priority = @before;
        SET @from_run_at = CASE WHEN @mark_run_at < @second_ago THEN @mark_run_at ELSE @second_ago END;
        SET @from_run_at = CASE WHEN @from_run_at < @lowered_to THEN @from_run_at ELSE @lowered_to END;
        SET @from_id = CASE WHEN @mark_run_at = @from_run_at AND @mark_run_at < @lowered_to THEN @mark_id ELSE 0 END;
    END;
    SET @count = @size - @left;

    IF @count > 0
    BEGIN
        INSERT INTO @found (priority, run_at, id)
        SELECT priority, run_at, id
        FROM (
            SELECT priority, run_at, id, ROW_NUMBER() OVER (PARTITION BY priority ORDER BY run_at, id) AS nth
            FROM mq.claimed
            WHERE batch_key = @batch_key
        ) AS c
        WHERE nth = 1;
        -- A full scan is noted, the front has moved, or there is a priority that may have a mark and has none.
        IF @full_scan = 1 OR EXISTS (
            SELECT *
            FROM @found AS f
            LEFT JOIN mq.mark AS m WITH (READPAST, READCOMMITTEDLOCK)
                ON m.type = @type AND m.n = @n AND m.priority = f.priority
            WHERE m.id NOT BETWEEN f.id - @stride AND f.id + @stride
                OR (m.id IS NULL AND (
                    SELECT COUNT(*) FROM mq.mark AS k WITH (READPAST, READCOMMITTEDLOCK)
                    WHERE k.type = @type AND k.n = @n AND k.priority < f.priority
                ) < @marks)
        )
            SET @marks_changed = 1;
    END
    ELSE IF @full_scan = 1 AND @marks_changed = 0 AND SYSUTCDATETIME() > DATEADD(MILLISECOND, @long_scan, @now)
    BEGIN
        -- Nothing of any priority is ready: all marks move up to now.
        INSERT INTO @found (priority, run_at, id)
        SELECT DISTINCT priority, @now, 0
        FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
        WHERE type = @type AND n = @n AND (run_at > @start OR id > 0);
        SET @marks_changed = CASE WHEN @@ROWCOUNT > 0 THEN 1 ELSE 0 END;
    END;
    IF @marks_changed = 1
    BEGIN
        SET @pause = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
        IF @full_scan = 1
            SET @scanned_at = DATEADD(MILLISECOND, CASE WHEN @pause < 5000 THEN @pause ELSE 5000 END, @now);
        EXEC mq.renew_marks @type, @n, @scanned_at, @promoted_to, @lowered_to, @marks, @found;
    END;
END;
GO
