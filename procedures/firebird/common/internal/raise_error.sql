-- raise_error: raise a numbered error of the contract. Its number is in the name of the exception: MQ_50002.

CREATE OR ALTER EXCEPTION mq_50001 'wrong_isolation';
CREATE OR ALTER EXCEPTION mq_50002 'invalid_argument';
CREATE OR ALTER EXCEPTION mq_50003 'wrong_kind';
CREATE OR ALTER EXCEPTION mq_50004 'queue_not_empty';
CREATE OR ALTER EXCEPTION mq_50005 'not_found';
CREATE OR ALTER EXCEPTION mq_50006 'unsuitable_table';
CREATE OR ALTER EXCEPTION mq_50007 'already_exists';
CREATE OR ALTER EXCEPTION mq_50008 'lease_lost';
CREATE OR ALTER EXCEPTION mq_50009 'area_missing';
CREATE OR ALTER EXCEPTION mq_50011 'cancelled';
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_raise_error (p_name varchar(30) CHARACTER SET ASCII, p_detail mq_argument)
AS
DECLARE v_text mq_argument;
BEGIN
    v_text = p_name || ': ' || LEFT(p_detail, 900);
    -- An exception's text holds up to 1,023 bytes.
    WHILE (OCTET_LENGTH(v_text) > 1000) DO
        v_text = LEFT(v_text, CHAR_LENGTH(v_text) - 10);
    IF (p_name = 'wrong_isolation') THEN
        EXCEPTION mq_50001 v_text;
    ELSE IF (p_name = 'invalid_argument') THEN
        EXCEPTION mq_50002 v_text;
    ELSE IF (p_name = 'wrong_kind') THEN
        EXCEPTION mq_50003 v_text;
    ELSE IF (p_name = 'queue_not_empty') THEN
        EXCEPTION mq_50004 v_text;
    ELSE IF (p_name = 'not_found') THEN
        EXCEPTION mq_50005 v_text;
    ELSE IF (p_name = 'unsuitable_table') THEN
        EXCEPTION mq_50006 v_text;
    ELSE IF (p_name = 'already_exists') THEN
        EXCEPTION mq_50007 v_text;
    ELSE IF (p_name = 'lease_lost') THEN
        EXCEPTION mq_50008 v_text;
    ELSE IF (p_name = 'area_missing') THEN
        EXCEPTION mq_50009 v_text;
    ELSE
        EXCEPTION mq_50011 v_text;
END^
SET TERM ; ^
