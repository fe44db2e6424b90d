-- read_options: the members of a flat JSON object of options, checked.
-- Arguments:   p_argument (an error's text begins with it), p_known (";NAME:KIND;NAME:KIND;", where KIND is LOW:HIGH of a whole
--              number, and 0:1 takes true and false too; key: a text of up to 1,000 characters; text; time: with its zone)
-- Returns:     name; number, moment (UTC) or text; all NULL for null
CREATE OR ALTER PROCEDURE imq_read_options (
    p_options mq_text, p_argument varchar(30) CHARACTER SET ASCII, p_known varchar(1000) CHARACTER SET ASCII
)
RETURNS (name varchar(40) CHARACTER SET ASCII, number bigint, moment timestamp, text mq_text)
AS
DECLARE v_name varchar(1000) CHARACTER SET UTF8;
DECLARE v_kind varchar(7) CHARACTER SET ASCII;
DECLARE v_spec varchar(100) CHARACTER SET ASCII; DECLARE v_word varchar(100) CHARACTER SET UTF8;
DECLARE v_low bigint; DECLARE v_high bigint;
DECLARE v_at integer; DECLARE v_zone integer;
DECLARE v_list varchar(1000) CHARACTER SET ASCII = '';
BEGIN
    FOR SELECT o.name, o.kind, o.text FROM imq_read_object(:p_options, :p_argument) AS o INTO v_name, v_kind, text DO
    BEGIN
        v_at = 0;
        IF (v_name SIMILAR TO '[a-z!_]{1,40}' ESCAPE '!') THEN
            v_at = POSITION(';' || v_name || ':', p_known);
        IF (v_at = 0) THEN
        BEGIN
            v_at = 1;
            WHILE (v_at < CHAR_LENGTH(p_known)) DO
            BEGIN
                v_list = v_list || ', ' || SUBSTRING(p_known FROM v_at + 1 FOR POSITION(':', p_known, v_at) - v_at - 1);
                v_at = POSITION(';', p_known, v_at + 1);
            END
            EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                p_argument || ': ' || LEFT(v_name, 100) || ' is not known; known are ' || SUBSTRING(v_list FROM 3));
        END
        name = v_name;
        v_at = v_at + CHAR_LENGTH(name) + 2;
        v_spec = SUBSTRING(p_known FROM v_at FOR POSITION(';', p_known, v_at) - v_at);
        number = NULL;
        moment = NULL;
        v_word = LEFT(text, 100);
        IF (v_kind = 'null') THEN
            text = NULL;
        ELSE IF (v_spec IN ('key', 'text', 'time')) THEN
        BEGIN
            IF (v_kind <> 'string') THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', name || ': must be a text');
            IF (v_spec = 'key' AND CHAR_LENGTH(text) > 1000) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', name || ': must be 1 to 200 characters, not '
                    || CHAR_LENGTH(text));
            IF (v_spec = 'time') THEN
            BEGIN
                IF (CHAR_LENGTH(text) < 40 AND v_word SIMILAR TO
                    '[0-9]{4}!-[0-9]{2}!-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(.[0-9]{1,6})?)?(Z|(!+|!-)[0-9]{2}:[0-9]{2})' ESCAPE '!') THEN
                BEGIN
                    v_zone = 0;
                    IF (RIGHT(v_word, 1) <> 'Z') THEN
                        v_zone = CAST(SUBSTRING(v_word FROM CHAR_LENGTH(v_word) - 5 FOR 1) || '1' AS integer)
                            * (60 * CAST(SUBSTRING(v_word FROM CHAR_LENGTH(v_word) - 4 FOR 2) AS integer) + CAST(RIGHT(v_word, 2) AS integer));
                    v_word = REPLACE(LEFT(v_word, CHAR_LENGTH(v_word) - IIF(RIGHT(v_word, 1) = 'Z', 1, 6)), 'T', ' ');
                    -- A timestamp has four digits after the second.
                    moment = DATEADD(-v_zone MINUTE TO CAST(LEFT(v_word, 24) AS timestamp));
                    WHEN ANY DO
                        moment = NULL;
                END
                IF (moment IS NULL) THEN
                    EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                        name || ': must be a time with its zone, such as 2026-11-27T08:30:00Z');
            END
        END
        ELSE
        BEGIN
            v_low = LEFT(v_spec, POSITION(':' IN v_spec) - 1);
            v_high = SUBSTRING(v_spec FROM POSITION(':' IN v_spec) + 1);
            IF (v_kind = 'number' AND v_word SIMILAR TO '!-?[0-9]{1,18}' ESCAPE '!') THEN
                number = v_word;
            ELSE IF (v_kind = 'boolean' AND v_spec = '0:1') THEN
                number = IIF(v_word = 'true', 1, 0);
            ELSE
                -- Its error names the limits.
                number = v_low - 1;
            EXECUTE PROCEDURE imq_require_range(name, number, v_low, v_high);
            text = NULL;
        END
        SUSPEND;
    END
END
