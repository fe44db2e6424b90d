-- move_ready: move the rows of a type in mq.ready to the places that the policy says.
-- Arguments: @type, @ring, @fair, @grouped (the policy)
--
-- It reads one lane of one priority after the other, from the place where it stopped: the rows that it has deleted stay
-- in the index until the caller commits.
CREATE OR ALTER PROCEDURE mq_internal.move_ready
    @type nvarchar(400), @ring bit, @fair bit, @grouped bit
AS
BEGIN
    DECLARE @step int = 1000, @start datetime2(7) = '0001-01-01', @priority int = -32768, @lane nvarchar(37) = N'';
    DECLARE @run_at datetime2(7), @id bigint, @next int, @next_lane nvarchar(37), @read int;
    DECLARE @read_rows TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, priority smallint NOT NULL, lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL, run_at datetime2(7) NOT NULL, id bigint NOT NULL
    );
    DECLARE @moved TABLE (id bigint NOT NULL, attempts smallint NOT NULL);
    WHILE 1 = 1
    BEGIN
        -- The next lane, in this priority or in a later one.
        SELECT @next = NULL, @next_lane = NULL;
        SELECT TOP (1) @next = priority, @next_lane = lane
        FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = @priority AND lane > @lane
        ORDER BY priority, lane;
        IF @next IS NULL
            SELECT TOP (1) @next = priority, @next_lane = lane
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority > @priority
            ORDER BY priority, lane;
        IF @next IS NULL
            BREAK;
        SELECT @priority = @next, @lane = @next_lane, @run_at = @start, @id = -9223372036854775808;
        -- In a fair queue all groups have their lanes already: continue with the next priority. In a ring the rows of its
        -- own place stay.
        IF @fair = 1 AND @lane > N'-' COLLATE Latin1_General_100_BIN2
        BEGIN
            SET @lane = REPLICATE(NCHAR(65535), 37);
            CONTINUE;
        END;
        IF @ring = 1 AND @priority = -32768 AND @lane = N'-' COLLATE Latin1_General_100_BIN2
            SET @id = 9223372036854775807;
        WHILE 1 = 1
        BEGIN
            DELETE FROM @read_rows;
            DELETE FROM @moved;
            -- Two key ranges: as one condition they would not be one.
            INSERT INTO @read_rows (priority, lane, run_at, id)
            SELECT TOP (@step) priority, lane, run_at, id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = @priority AND lane = @lane AND run_at = @run_at AND id > @id
            ORDER BY priority, lane, run_at, id;
            SET @read = @@ROWCOUNT;
            IF @read = 0
            BEGIN
                INSERT INTO @read_rows (priority, lane, run_at, id)
                SELECT TOP (@step) priority, lane, run_at, id
                FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @priority AND lane = @lane AND run_at > @run_at
                ORDER BY priority, lane, run_at, id;
                SET @read = @@ROWCOUNT;
            END;
            IF @read = 0
                BREAK;
            SELECT TOP (1) @run_at = run_at, @id = id FROM @read_rows ORDER BY n DESC;
            DELETE r
            OUTPUT deleted.id, deleted.attempts INTO @moved (id, attempts)
            FROM @read_rows AS s
            INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = s.id
            CROSS APPLY mq_internal.place(@ring, @fair, @grouped, m.priority, m.group_key, m.run_at) AS p
            INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON r.type = @type AND r.priority = s.priority AND r.lane = s.lane AND r.run_at = s.run_at AND r.id = s.id
            WHERE p.priority <> s.priority OR p.lane <> s.lane OR ((@ring = 1 OR s.run_at = @start) AND p.run_at <> s.run_at)
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            -- A message of a queue with groups may have had several tickets.
            INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
            SELECT @type, p.priority, p.lane, p.run_at, m.id, s.attempts
            FROM (SELECT id, MAX(attempts) AS attempts FROM @moved GROUP BY id) AS s
            INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = s.id
            CROSS APPLY mq_internal.place(@ring, @fair, @grouped, m.priority, m.group_key, m.run_at) AS p
            WHERE NOT EXISTS (
                SELECT * FROM mq.ready AS r WITH (READUNCOMMITTED)
                WHERE r.type = @type AND r.priority = p.priority AND r.lane = p.lane AND r.run_at = p.run_at AND r.id = m.id
            )
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        END;
    END;
END;
