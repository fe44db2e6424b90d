-- topic_matches: whether a pattern matches a topic.
-- Arguments:   p_pattern, p_topic (as accepted by require_topic)
-- Returns:     1 or 0
--
-- When a word does not match, the last # takes one more word. An earlier # need not take more: the part between the two
-- has already matched at its first possible place. So the time is at most the number of words in the pattern times that
-- in the topic.
CREATE OR ALTER FUNCTION imq_topic_matches (p_pattern mq_name, p_topic mq_name)
RETURNS smallint
AS
-- The two texts with a dot after each word; the other variables are positions in them.
DECLARE v_pattern varchar(201) CHARACTER SET UTF8;
DECLARE v_topic varchar(201) CHARACTER SET UTF8;
DECLARE v_at integer = 1;
DECLARE v_word integer = 1;
DECLARE v_next integer; DECLARE v_last integer; DECLARE v_taken integer;
DECLARE v_part varchar(201) CHARACTER SET UTF8;
BEGIN
    v_pattern = p_pattern || '.';
    v_topic = p_topic || '.';
    WHILE (v_word <= CHAR_LENGTH(v_topic)) DO
    BEGIN
        v_part = '';
        IF (v_at <= CHAR_LENGTH(v_pattern)) THEN
            v_part = SUBSTRING(v_pattern FROM v_at FOR POSITION('.', v_pattern, v_at) - v_at + 1);
        v_next = POSITION('.', v_topic, v_word) + 1;
        IF (v_part = '#.') THEN
        BEGIN
            v_at = v_at + 2;
            v_last = v_at;
            v_taken = v_word;
        END
        ELSE IF (v_part IN ('*.', SUBSTRING(v_topic FROM v_word FOR v_next - v_word))) THEN
        BEGIN
            v_at = v_at + CHAR_LENGTH(v_part);
            v_word = v_next;
        END
        ELSE IF (v_last IS NOT NULL) THEN
        BEGIN
            v_taken = POSITION('.', v_topic, v_taken) + 1;
            v_word = v_taken;
            v_at = v_last;
        END
        ELSE
            RETURN 0;
    END
    WHILE (SUBSTRING(v_pattern FROM v_at FOR 2) = '#.') DO
        v_at = v_at + 2;
    RETURN IIF(v_at > CHAR_LENGTH(v_pattern), 1, 0);
END
