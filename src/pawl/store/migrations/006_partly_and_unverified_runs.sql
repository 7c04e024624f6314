-- `delivery` knows two words only; a file of before has them alone.
ALTER TABLE run ADD COLUMN delivered TEXT;
CREATE TRIGGER run_delivered_once BEFORE UPDATE OF delivered ON run
WHEN OLD.delivered IS NOT NULL AND NEW.delivered IS NOT OLD.delivered
BEGIN SELECT RAISE(ABORT, 'the delivery of a run is written once'); END;
