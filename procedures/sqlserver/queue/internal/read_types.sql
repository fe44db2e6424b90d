-- read_types: the types of a list, each once. require_types raises the errors.
-- Returns: n (the first line that has it), type
CREATE OR ALTER FUNCTION mq_internal.read_types (@types nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT MIN(t.n) AS n, t.type
    FROM (
        SELECT n, CAST(item AS nvarchar(400)) COLLATE Latin1_General_100_BIN2 AS type FROM mq_internal.split_list(@types)
    ) AS t
    GROUP BY t.type;
