-- split_list: split a list in the contract's format into its items.
-- Arguments:   p_argument (its name in the contract), p_list, p_json (0: a line that begins with a double quote is an
--              ordinary line)
-- Returns:     n (the line's number), item (a line; the value of a line that is a JSON string); no row for an empty line
--
-- SUBSTRING reads a BLOB from its start, and a UTF8 BLOB character by character. So the list is cut as bytes: first into
-- pieces, then into chunks.
CREATE OR ALTER PROCEDURE imq_split_list (
    p_argument varchar(30) CHARACTER SET ASCII, p_list mq_text, p_json smallint = 1
)
RETURNS (n integer, item mq_text)
AS
DECLARE v_list blob SUB_TYPE TEXT CHARACTER SET OCTETS; DECLARE v_piece blob SUB_TYPE TEXT CHARACTER SET OCTETS;
DECLARE v_long blob SUB_TYPE TEXT CHARACTER SET OCTETS;
DECLARE v_chunk varchar(8000) CHARACTER SET OCTETS; DECLARE v_short varchar(8000) CHARACTER SET OCTETS;
DECLARE v_length integer;
-- The start positions of the line, the piece and the chunk in the list, from 1.
DECLARE v_line integer = 1;
DECLARE v_piece_at integer = 1;
DECLARE v_chunk_at integer = 1;
DECLARE v_piece_end integer = 0;
DECLARE v_end integer;
DECLARE v_error varchar(200) CHARACTER SET UTF8;
BEGIN
    n = 0;
    v_list = CAST(p_list AS blob SUB_TYPE TEXT CHARACTER SET OCTETS) || x'0A';
    v_length = OCTET_LENGTH(v_list);
    WHILE (v_chunk_at <= v_length) DO
    BEGIN
        IF (v_chunk_at + 7999 > v_piece_end AND v_piece_end < v_length) THEN
        BEGIN
            -- Keep an unfinished line in the piece, unless it would fill the piece.
            v_piece_at = IIF(v_chunk_at - v_line < 131072, v_line, v_chunk_at);
            v_piece = SUBSTRING(v_list FROM v_piece_at FOR 262144);
            v_piece_end = v_piece_at + OCTET_LENGTH(v_piece) - 1;
        END
        v_chunk = SUBSTRING(v_piece FROM v_chunk_at - v_piece_at + 1 FOR 8000);
        v_end = POSITION(x'0A', v_chunk);
        WHILE (v_end > 0) DO
        BEGIN
            -- Now positions in the list: v_end is the position of the line feed.
            v_end = v_chunk_at + v_end - 1;
            n = n + 1;
            IF (v_end > v_line) THEN
            BEGIN
                v_long = NULL;
                IF (v_line >= v_chunk_at) THEN
                    v_short = SUBSTRING(v_chunk FROM v_line - v_chunk_at + 1 FOR v_end - v_line);
                ELSE
                BEGIN
                    IF (v_line >= v_piece_at) THEN
                        v_long = SUBSTRING(v_piece FROM v_line - v_piece_at + 1 FOR v_end - v_line);
                    ELSE
                        v_long = SUBSTRING(v_list FROM v_line FOR v_end - v_line);
                    v_short = SUBSTRING(v_long FROM 1 FOR 1);
                END
                IF (p_json = 1 AND LEFT(v_short, 1) = '"') THEN
                BEGIN
                    v_error = p_argument || ': line ' || n || ' begins with a double quote and is not a JSON string';
                    SELECT LIST(j.piece, '') FROM imq_json_text(COALESCE(:v_long, :v_short), :v_error) AS j INTO item;
                END
                ELSE
                    item = COALESCE(v_long, v_short);
                SUSPEND;
            END
            v_line = v_end + 1;
            v_end = IIF(v_line < v_chunk_at + 8000, POSITION(x'0A', v_chunk, v_line - v_chunk_at + 1), 0);
        END
        -- The next chunk begins with the line that this chunk has cut, if it then shows more of the line.
        v_chunk_at = IIF(v_line > v_chunk_at, v_line, v_chunk_at + 8000);
    END
END
