-- ids_of_group: the ids of a group's messages, from a bounded search.
-- Arguments:   p_type, p_group_key (NULL: no rows), p_size
-- Returns:     id: the lowest p_size ids found, in order: all due messages of a queue with groups, and other messages
--              among the first 10,000 of each state
CREATE OR ALTER PROCEDURE imq_ids_of_group (p_type mq_name, p_group_key mq_name, p_size integer)
RETURNS (id bigint)
AS
DECLARE c_cap integer = 10000;
DECLARE v_from timestamp;
BEGIN
    IF (p_group_key IS NULL) THEN
        EXIT;
    v_from = imq_newest_from('dead', p_type, c_cap);
    FOR
        SELECT g.id
        FROM (
            SELECT o.id FROM mq_grouped AS o
            WHERE o.type = :p_type AND o.group_key = :p_group_key
            PLAN (o ORDER mq_grouped_pk)
            ORDER BY o.type, o.group_key, o.id
            ROWS :p_size
        ) AS g
        UNION
        SELECT m.id
        FROM (
            SELECT r.id
            FROM (
                -- In a queue with groups these rows are tickets.
                SELECT o.id FROM mq_ready AS o WHERE o.type = :p_type
                PLAN (o ORDER mq_ready_pk) ORDER BY o.type, o.priority, o.run_at, o.id ROWS :c_cap
            ) AS r
            UNION ALL
            SELECT d.id
            FROM (
                SELECT o.id FROM mq_delayed AS o WHERE o.type = :p_type
                PLAN (o ORDER mq_delayed_due) ORDER BY o.type, o.run_at, o.id ROWS :c_cap
            ) AS d
            UNION ALL
            SELECT a.id
            FROM (
                SELECT COALESCE(b.id, c.id) AS id
                FROM mq_batch AS b
                LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key
                WHERE b.type = :p_type
                PLAN JOIN (b ORDER mq_batch_lease, c INDEX (mq_claimed_pk))
                ORDER BY b.type, b.lease_until
                ROWS :c_cap
            ) AS a
            UNION ALL
            SELECT n.id
            FROM (
                SELECT o.id FROM mq_dead AS o WHERE o.type = :p_type AND o.died_at >= :v_from
                ORDER BY o.died_at DESC, o.id DESC ROWS :c_cap
            ) AS n
        ) AS x
        LEFT JOIN mq_message AS m ON m.id = x.id
        WHERE m.group_key = :p_group_key
        ORDER BY 1
        ROWS :p_size
        INTO id
    DO
        SUSPEND;
END
