-- forget_buckets: delete up to 100 full buckets of a type's groups.
-- Transaction: an autonomous transaction that ends at once, because claims need the rows that it locks; skips groups that a
--              claim has locked
--
-- The first claim of each second calls this after it has taken its messages: a claim cannot lock a bucket that was deleted
-- after the claim began.
CREATE OR ALTER PROCEDURE imq_forget_buckets (p_type mq_name)
AS
DECLARE c_buckets integer = 100;
DECLARE v_now bigint;
DECLARE v_group_key mq_name;
DECLARE v_locked integer;
BEGIN
    v_now = imq_microseconds();
    IF (EXISTS (SELECT * FROM mq_bucket AS b WHERE b.type = :p_type AND b.full_at <= :v_now)) THEN
        IN AUTONOMOUS TRANSACTION DO
            FOR SELECT b.group_key
                FROM mq_bucket AS b
                WHERE b.type = :p_type AND b.full_at <= :v_now
                PLAN (b INDEX (mq_bucket_full))
                ROWS :c_buckets
                INTO v_group_key
            DO
            BEGIN
                EXECUTE PROCEDURE imq_lock_group(p_type, v_group_key) RETURNING_VALUES v_locked;
                IF (v_locked = 1) THEN
                    DELETE FROM mq_bucket WHERE type = :p_type AND group_key = :v_group_key AND full_at <= :v_now;
                WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                    v_locked = 0;
            END
END
