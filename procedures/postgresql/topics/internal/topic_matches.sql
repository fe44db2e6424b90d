-- topic_matches: whether a pattern matches a topic.
--
-- When a word does not match, the last # takes one more word. An earlier # need not take more: the part between the two
-- has already matched at its first possible place. So the time is at most the number of words in the pattern times that
-- in the topic.
CREATE OR REPLACE FUNCTION mq_internal.topic_matches(p_pattern text, p_topic text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_pattern text[] := string_to_array(p_pattern, '.');
    v_topic text[] := string_to_array(p_topic, '.');
    v_at integer := 1;
    v_word integer := 1;
    v_last integer;
    v_taken integer;
BEGIN
    WHILE v_word <= cardinality(v_topic) LOOP
        IF v_pattern[v_at] = '#' THEN
            v_last := v_at;
            v_taken := v_word;
            v_at := v_at + 1;
        ELSIF v_pattern[v_at] COLLATE "C" IN ('*', v_topic[v_word]) THEN
            v_at := v_at + 1;
            v_word := v_word + 1;
        ELSIF v_last IS NOT NULL THEN
            v_taken := v_taken + 1;
            v_word := v_taken;
            v_at := v_last + 1;
        ELSE
            RETURN false;
        END IF;
    END LOOP;
    WHILE v_pattern[v_at] = '#' LOOP
        v_at := v_at + 1;
    END LOOP;
    RETURN v_at > cardinality(v_pattern);
END
$$;
