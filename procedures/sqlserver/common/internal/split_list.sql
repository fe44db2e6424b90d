-- split_list: split a list in the contract's format into its items.
-- Returns: n (the line's number), item (a line; the value of a line that is a JSON string), quoted (1: it was a JSON
--     string), valid (0: it begins like a JSON string but is not one, or contains the character NUL; item is
--     undefined); no row for an empty line
CREATE OR ALTER FUNCTION mq_internal.split_list (@list nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT l.n, CASE l.quoted WHEN 1 THEN s.item ELSE l.item END AS item, l.quoted,
        CASE
            WHEN l.quoted = 1 AND (s.parts IS NULL OR s.parts <> 1) THEN 0
            WHEN CHARINDEX(NCHAR(0) COLLATE Latin1_General_100_BIN2, s.item) > 0 THEN 0
            ELSE 1
        END AS valid
    FROM (
        SELECT n, line AS item, CASE UNICODE(line) WHEN 34 THEN 1 ELSE 0 END AS quoted
        FROM mq_internal.split_lines(@list)
        WHERE DATALENGTH(line) > 0
    ) AS l
    OUTER APPLY (
        SELECT MAX(CASE v.type WHEN 1 THEN v.value ELSE N'' END) AS item, SUM(CASE v.type WHEN 1 THEN 1 ELSE 2 END) AS parts
        FROM OPENJSON(CASE WHEN l.quoted = 1 AND ISJSON(N'[' + l.item + N']') = 1 THEN N'[' + l.item + N']' ELSE N'[]' END) AS v
        WHERE l.quoted = 1
    ) AS s;
