-- read_types: the types of a list with one type per line; see send_batch for the format.
-- Returns:     p_list: a JSON array of the types in their order, each once
--
-- In the quoted text each line feed is \n and each backslash \\. First the backslashes are written in another way, then the
-- line feeds end the strings of an array. For a list as short as this, that is faster than send_batch's recursive query.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_types(
    IN p_types longtext CHARACTER SET utf8mb4, OUT p_list longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count, v_bad int;
    -- As in join_call: wait_for_any begins no transaction.
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(t.type) ORDER BY t.n), ']'), COUNT(t.type),
        MIN(IF(COALESCE(CHAR_LENGTH(t.type) BETWEEN 1 AND 200, 0), NULL, t.n))
    INTO p_list, v_count, v_bad
    FROM (
        SELECT k.type, MIN(k.n) AS n
        FROM (
            SELECT j.n, CONVERT(CASE
                    WHEN ASCII(j.item) <> 34 THEN j.item
                    WHEN JSON_VALID(j.item) /*M! AND j.item NOT REGEXP '(?<!\\\\)(\\\\\\\\)*\\\\[^"\\\\/bfnrtu]' */
                        THEN JSON_UNQUOTE(JSON_EXTRACT(j.item, '$'))
                END USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ AS type
            FROM JSON_TABLE(
                CONCAT('[', REPLACE(REPLACE(JSON_QUOTE(p_types), '\\\\', '\\u005c'), '\\n', '","'), ']'),
                '$[*]' COLUMNS (n FOR ORDINALITY, item longtext CHARACTER SET utf8mb4 PATH '$')
            ) AS j
            WHERE LENGTH(j.item) > 0
        ) AS k
        GROUP BY k.type
    ) AS t;
    IF v_bad IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT('types: line ', v_bad,
            ': must be 1 to 200 characters, and a JSON string if it begins with a double quote'));
    END IF;
    IF COALESCE(v_count, 0) NOT BETWEEN 1 AND 1000 THEN
        CALL imq_raise_error('invalid_argument', 'types: must be 1 to 1,000 lines with a type each');
    END IF;
END
