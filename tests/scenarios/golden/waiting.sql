BEGIN TRANSACTION;
CREATE TABLE answer (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        asked_of TEXT NOT NULL,
        query TEXT NOT NULL,
        code TEXT NOT NULL,
        text TEXT NOT NULL,
        rests TEXT NOT NULL,
        created TEXT NOT NULL,
        used INTEGER NOT NULL,
        UNIQUE (workspace, asked_of, query, code)
    );
CREATE TABLE blob (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'zlib')),
        refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0),
        last_put INTEGER NOT NULL
    );
INSERT INTO "blob" VALUES(1,'72dd223af541dd7fd5df48bef765603c5ca070ce3b42154ba1975bc2b7452625',6,'raw',2,1794805502);
INSERT INTO "blob" VALUES(2,'015af9ec776baaac555b8c29f605e2454c4f21d9d4288c50604f810f4c9237b5',13,'raw',2,1794805502);
CREATE TABLE checkpoint (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        name TEXT NOT NULL,
        created TEXT NOT NULL,
        after_entry INTEGER NOT NULL,
        progress TEXT NOT NULL,
        verification TEXT NOT NULL,
        policy TEXT NOT NULL,
        UNIQUE (workspace, name)
    );
CREATE TABLE checkpoint_change (
            checkpoint INTEGER NOT NULL REFERENCES checkpoint (id),
            path BLOB NOT NULL,
            before_kind TEXT,
            before_mode INTEGER,
            before_blob TEXT,
            after_kind TEXT,
            after_mode INTEGER,
            after_blob TEXT,
            PRIMARY KEY (checkpoint, path)
        ) WITHOUT ROWID
        ;
CREATE TABLE content (
        blob INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
        data BLOB NOT NULL
    );
INSERT INTO "content" VALUES(1,X'626567696E0A');
INSERT INTO "content" VALUES(2,X'626567696E0A6D6964646C650A');
CREATE TABLE entry (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        reason TEXT NOT NULL,
        created TEXT NOT NULL,
        state TEXT NOT NULL,
        reverses INTEGER REFERENCES entry (id),
        reversed_by INTEGER REFERENCES entry (id),
        pruned INTEGER NOT NULL DEFAULT 0,
        files INTEGER NOT NULL
    );
CREATE TABLE entry_change (
            entry INTEGER NOT NULL REFERENCES entry (id),
            path BLOB NOT NULL,
            before_kind TEXT,
            before_mode INTEGER,
            before_blob TEXT,
            after_kind TEXT,
            after_mode INTEGER,
            after_blob TEXT,
            PRIMARY KEY (entry, path)
        ) WITHOUT ROWID
        ;
CREATE TABLE entry_mode (
        entry INTEGER NOT NULL REFERENCES entry (id),
        path BLOB NOT NULL,
        mode INTEGER NOT NULL,
        PRIMARY KEY (entry, path)
    ) WITHOUT ROWID
    ;
CREATE TABLE entry_reversal (
            entry INTEGER NOT NULL REFERENCES entry (id),
            reversed INTEGER NOT NULL REFERENCES entry (id),
            PRIMARY KEY (entry, reversed)
        ) WITHOUT ROWID
        ;
CREATE TABLE evaluation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL UNIQUE,
        score INTEGER NOT NULL CHECK (score BETWEEN 1 AND 5),
        reason TEXT NOT NULL,
        judge TEXT NOT NULL
    );
CREATE TABLE event (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    );
INSERT INTO "event" VALUES(1,'2026-11-16T05:05:01.824+00:00',X'@WORKSPACE@','r6af49c03','run','{"request": "write the middle into notes.txt", "mode": "agent", "approval": "final"}');
INSERT INTO "event" VALUES(2,'2026-11-16T05:05:01.841+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "intent", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(3,'2026-11-16T05:05:01.858+00:00',X'@WORKSPACE@','r6af49c03','intent','{"intent": "edit"}');
INSERT INTO "event" VALUES(4,'2026-11-16T05:05:01.874+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "plan", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(5,'2026-11-16T05:05:01.890+00:00',X'@WORKSPACE@','r6af49c03','plan','{"tasks": ["write the middle into notes.txt"]}');
INSERT INTO "event" VALUES(6,'2026-11-16T05:05:01.926+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "prove", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(7,'2026-11-16T05:05:02.102+00:00',X'@WORKSPACE@','r6af49c03','baseline','{"standing": "skipped", "counts": null}');
INSERT INTO "event" VALUES(8,'2026-11-16T05:05:02.122+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "act", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(9,'2026-11-16T05:05:02.642+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "verify", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(10,'2026-11-16T05:05:03.082+00:00',X'@WORKSPACE@','r6af49c03','verified','{"accepted": true, "verdicts": {"tests": "skipped"}, "refused": []}');
INSERT INTO "event" VALUES(11,'2026-11-16T05:05:03.091+00:00',X'@WORKSPACE@','r6af49c03','task verified','{"task": 1}');
INSERT INTO "event" VALUES(12,'2026-11-16T05:05:03.094+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "deliver", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(13,'2026-11-16T05:05:03.106+00:00',X'@WORKSPACE@','r6af49c03','proposed','{"digest": "c30b915c5182e2515436248a334a898839a3d7de4725dfef246ef8a52224a0ca", "paths": ["notes.txt"]}');
INSERT INTO "event" VALUES(14,'2026-11-16T05:05:05.239+00:00',X'@WORKSPACE@','r6af49c03','node','{"node": "approve", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(15,'2026-11-16T05:05:05.322+00:00',X'@WORKSPACE@','rf9c0c026','run','{"request": "write the end into notes.txt", "mode": "agent", "approval": "each"}');
INSERT INTO "event" VALUES(16,'2026-11-16T05:05:05.331+00:00',X'@WORKSPACE@','rf9c0c026','node','{"node": "intent", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(17,'2026-11-16T05:05:05.338+00:00',X'@WORKSPACE@','rf9c0c026','intent','{"intent": "edit"}');
INSERT INTO "event" VALUES(18,'2026-11-16T05:05:05.343+00:00',X'@WORKSPACE@','rf9c0c026','node','{"node": "plan", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(19,'2026-11-16T05:05:05.346+00:00',X'@WORKSPACE@','rf9c0c026','plan','{"tasks": ["write the end into notes.txt"]}');
INSERT INTO "event" VALUES(20,'2026-11-16T05:05:05.347+00:00',X'@WORKSPACE@','rf9c0c026','node','{"node": "prove", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(21,'2026-11-16T05:05:05.437+00:00',X'@WORKSPACE@','rf9c0c026','baseline','{"standing": "skipped", "counts": null}');
INSERT INTO "event" VALUES(22,'2026-11-16T05:05:05.444+00:00',X'@WORKSPACE@','rf9c0c026','node','{"node": "act", "task": 1, "attempt": 1}');
INSERT INTO "event" VALUES(23,'2026-11-16T05:05:05.630+00:00',X'@WORKSPACE@','rf9c0c026','node','{"node": "approve", "task": 1, "attempt": 1}');
CREATE TABLE known_file (
        workspace BLOB NOT NULL,
        path BLOB NOT NULL,
        digest TEXT NOT NULL,
        seen TEXT NOT NULL,
        PRIMARY KEY (workspace, path)
    ) WITHOUT ROWID
    ;
INSERT INTO "known_file" VALUES(X'@WORKSPACE@',X'6E6F7465732E747874','72dd223af541dd7fd5df48bef765603c5ca070ce3b42154ba1975bc2b7452625','2026-11-16T05:05:02.622+00:00');
CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        tier TEXT NOT NULL,
        text TEXT NOT NULL,
        words TEXT NOT NULL,
        source TEXT NOT NULL,
        run TEXT NOT NULL,
        created TEXT NOT NULL,
        UNIQUE (workspace, words)
    );
PRAGMA writable_schema=ON;
INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)VALUES('table','memory_text','memory_text',0,'CREATE VIRTUAL TABLE memory_text USING fts5 (text, content = ''memory'', content_rowid = ''id'')');
CREATE TABLE 'memory_text_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO "memory_text_config" VALUES('version',4);
CREATE TABLE 'memory_text_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO "memory_text_data" VALUES(1,X'');
INSERT INTO "memory_text_data" VALUES(10,X'00000000000000');
CREATE TABLE 'memory_text_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
CREATE TABLE 'memory_text_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE request (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        run TEXT NOT NULL,
        mode TEXT NOT NULL,
        stage TEXT NOT NULL,
        role TEXT NOT NULL,
        model TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        tools TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        cost TEXT,
        seconds REAL NOT NULL,
        first_token_seconds REAL,
        attempts INTEGER NOT NULL,
        ended TEXT NOT NULL
    );
INSERT INTO "request" VALUES(1,'2026-11-16T05:05:02.557+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','agent','act','artisan','scripted:@SCRIPT@','off','["change_files", "check", "file_read", "file_search", "file_write", "line_edit", "modify", "outline", "run_command", "strict_patch"]',1660,28,0,1,'0',0.0,NULL,1,'calls');
INSERT INTO "request" VALUES(2,'2026-11-16T05:05:02.577+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','agent','follow_up','artisan','scripted:@SCRIPT@','off','["change_files", "check", "file_read", "file_search", "file_write", "line_edit", "modify", "outline", "run_command", "strict_patch"]',1715,2,0,1,'0',0.0,NULL,1,'end');
INSERT INTO "request" VALUES(3,'2026-11-16T05:05:05.513+00:00',X'@WORKSPACE@','c22eea9b0','rf9c0c026','agent','act','artisan','scripted:@SCRIPT@','off','["change_files", "check", "file_read", "file_search", "file_write", "line_edit", "modify", "outline", "run_command", "strict_patch"]',1659,16,0,1,'0',0.0,NULL,1,'calls');
INSERT INTO "request" VALUES(4,'2026-11-16T05:05:05.529+00:00',X'@WORKSPACE@','c22eea9b0','rf9c0c026','agent','follow_up','artisan','scripted:@SCRIPT@','off','["change_files", "check", "file_read", "file_search", "file_write", "line_edit", "modify", "outline", "run_command", "strict_patch"]',1689,27,0,1,'0',0.0,NULL,1,'calls');
CREATE TABLE run (
        id TEXT PRIMARY KEY,
        workspace BLOB NOT NULL,
        created TEXT NOT NULL,
        state TEXT NOT NULL,
        node TEXT NOT NULL,
        task INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        request TEXT NOT NULL,
        delivery TEXT CHECK (delivery IN ('DONE', 'NEEDS_WORK'))
    ) WITHOUT ROWID
    ;
INSERT INTO "run" (id, workspace, created, state, node, task, attempt, request, delivery) VALUES('r6af49c03',X'@WORKSPACE@','2026-11-16T05:05:01.820+00:00','waiting','approve',1,1,'{"text": "write the middle into notes.txt", "mode": "agent", "approval": "final", "model": "scripted:@SCRIPT@"}',NULL);
INSERT INTO "run" (id, workspace, created, state, node, task, attempt, request, delivery) VALUES('rf9c0c026',X'@WORKSPACE@','2026-11-16T05:05:05.309+00:00','waiting','approve',1,1,'{"text": "write the end into notes.txt", "mode": "agent", "approval": "each", "model": "scripted:@SCRIPT@"}',NULL);
CREATE TABLE run_step (
        run TEXT NOT NULL REFERENCES run (id),
        talk TEXT NOT NULL,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, talk, number)
    ) WITHOUT ROWID
    ;
INSERT INTO "run_step" VALUES('r6af49c03','1.1',0,'{"kind": "call", "name": "file_read", "text": "     1 | begin", "failed": false}');
INSERT INTO "run_step" VALUES('r6af49c03','1.1',1,'{"kind": "answer", "message": {"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nmiddle\n"}, "id": "call_2", "name": "strict_patch", "raw": "{\"path\": \"notes.txt\", \"old\": \"begin\\n\", \"new\": \"begin\\nmiddle\\n\"}"}]}, "hidden": false, "stop": "calls", "usage": [1660, 28, 0, 0], "estimated": true, "model": "scripted:@SCRIPT@", "cost": "0", "seconds": 0.0}');
INSERT INTO "run_step" VALUES('r6af49c03','1.1',2,'{"kind": "call", "name": "strict_patch", "text": "changed notes.txt: 1 line; the syntax of ''.txt'' files is not checked", "failed": false}');
INSERT INTO "run_step" VALUES('r6af49c03','1.1',3,'{"kind": "answer", "message": {"speaker": "assistant", "text": "Written."}, "hidden": false, "stop": "end", "usage": [1715, 2, 0, 0], "estimated": true, "model": "scripted:@SCRIPT@", "cost": "0", "seconds": 0.0}');
INSERT INTO "run_step" VALUES('rf9c0c026','1.1',0,'{"kind": "call", "name": "file_read", "text": "     1 | begin", "failed": false}');
INSERT INTO "run_step" VALUES('rf9c0c026','1.1',1,'{"kind": "answer", "message": {"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt"}, "id": "call_2", "name": "file_read", "raw": "{\"path\": \"notes.txt\"}"}]}, "hidden": false, "stop": "calls", "usage": [1659, 16, 0, 0], "estimated": true, "model": "scripted:@SCRIPT@", "cost": "0", "seconds": 0.0}');
INSERT INTO "run_step" VALUES('rf9c0c026','1.1',2,'{"kind": "call", "name": "file_read", "text": "     1 | begin", "failed": false}');
INSERT INTO "run_step" VALUES('rf9c0c026','1.1',3,'{"kind": "answer", "message": {"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nend\n"}, "id": "call_3", "name": "strict_patch", "raw": "{\"path\": \"notes.txt\", \"old\": \"begin\\n\", \"new\": \"begin\\nend\\n\"}"}]}, "hidden": false, "stop": "calls", "usage": [1689, 27, 0, 0], "estimated": true, "model": "scripted:@SCRIPT@", "cost": "0", "seconds": 0.0}');
CREATE TABLE run_value (
        run TEXT NOT NULL REFERENCES run (id),
        name TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID
    ;
INSERT INTO "run_value" VALUES('r6af49c03','after','null');
INSERT INTO "run_value" VALUES('r6af49c03','answer','"Written."');
INSERT INTO "run_value" VALUES('r6af49c03','baseline','{"step": "tests", "standing": "skipped", "reason": "no configuration, dependency or test file of a known test framework was found", "counts": null, "findings": []}');
INSERT INTO "run_value" VALUES('r6af49c03','before','{"counts": null, "standing": "skipped", "reason": "no configuration, dependency or test file of a known test framework was found", "failing": []}');
INSERT INTO "run_value" VALUES('r6af49c03','before counts','null');
INSERT INTO "run_value" VALUES('r6af49c03','conversation','"ce178831e"');
INSERT INTO "run_value" VALUES('r6af49c03','dialogue 1.1','[{"speaker": "user", "text": "write the middle into notes.txt"}, {"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt"}, "id": "call_1", "name": "file_read", "raw": "{\"path\": \"notes.txt\"}"}]}, {"speaker": "tool", "answers": [{"call": "call_1", "name": "file_read", "text": "     1 | begin"}]}, {"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nmiddle\n"}, "id": "call_2", "name": "strict_patch", "raw": "{\"path\": \"notes.txt\", \"old\": \"begin\\n\", \"new\": \"begin\\nmiddle\\n\"}"}]}, {"speaker": "tool", "answers": [{"call": "call_2", "name": "strict_patch", "text": "changed notes.txt: 1 line; the syntax of ''.txt'' files is not checked"}]}, {"speaker": "assistant", "text": "Written."}]');
INSERT INTO "run_value" VALUES('r6af49c03','ended','"answered"');
INSERT INTO "run_value" VALUES('r6af49c03','held','[]');
INSERT INTO "run_value" VALUES('r6af49c03','in graph','true');
INSERT INTO "run_value" VALUES('r6af49c03','intent','{"intent": "edit", "command": "", "summary": ""}');
INSERT INTO "run_value" VALUES('r6af49c03','last talk','{"1": "1.1"}');
INSERT INTO "run_value" VALUES('r6af49c03','notes','["no test was run: no configuration, dependency or test file of a known test framework was found"]');
INSERT INTO "run_value" VALUES('r6af49c03','plan','[{"what": "write the middle into notes.txt", "paths": [], "creates": []}]');
INSERT INTO "run_value" VALUES('r6af49c03','question','{"kind": "change", "digest": "c30b915c5182e2515436248a334a898839a3d7de4725dfef246ef8a52224a0ca", "why": []}');
INSERT INTO "run_value" VALUES('r6af49c03','read 1.1','["notes.txt"]');
INSERT INTO "run_value" VALUES('r6af49c03','refused','[]');
INSERT INTO "run_value" VALUES('r6af49c03','said before','0');
INSERT INTO "run_value" VALUES('r6af49c03','scripts','{"scripted:@SCRIPT@": [1, 2]}');
INSERT INTO "run_value" VALUES('r6af49c03','seconds','3.435040932999982');
INSERT INTO "run_value" VALUES('r6af49c03','told','[]');
INSERT INTO "run_value" VALUES('r6af49c03','verdicts','[["tests", "skipped", "no configuration, dependency or test file of a known test framework was found"]]');
INSERT INTO "run_value" VALUES('r6af49c03','verified','"c30b915c5182e2515436248a334a898839a3d7de4725dfef246ef8a52224a0ca"');
INSERT INTO "run_value" VALUES('rf9c0c026','baseline','{"step": "tests", "standing": "skipped", "reason": "no configuration, dependency or test file of a known test framework was found", "counts": null, "findings": []}');
INSERT INTO "run_value" VALUES('rf9c0c026','before','{"counts": null, "standing": "skipped", "reason": "no configuration, dependency or test file of a known test framework was found", "failing": []}');
INSERT INTO "run_value" VALUES('rf9c0c026','conversation','"c22eea9b0"');
INSERT INTO "run_value" VALUES('rf9c0c026','in graph','true');
INSERT INTO "run_value" VALUES('rf9c0c026','intent','{"intent": "edit", "command": "", "summary": ""}');
INSERT INTO "run_value" VALUES('rf9c0c026','plan','[{"what": "write the end into notes.txt", "paths": [], "creates": []}]');
INSERT INTO "run_value" VALUES('rf9c0c026','question','{"kind": "call", "digest": "cf7901df9f915f9757edbddb2a930891bf6a688d8f007126a35e1a7641a2d0ce", "why": ["the preset caged says allow of a tool that writes"], "tool": "strict_patch", "arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nend\n"}, "shown": ["path: notes.txt", "old:", "  begin", "  ", "new:", "  begin", "  end", "  "], "flags": []}');
INSERT INTO "run_value" VALUES('rf9c0c026','read 1.1','["notes.txt"]');
INSERT INTO "run_value" VALUES('rf9c0c026','ruling 1.1.4','{"ruling": "allow", "reason": "the preset caged says allow of a tool that writes", "arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nend\n"}}');
INSERT INTO "run_value" VALUES('rf9c0c026','said before','0');
INSERT INTO "run_value" VALUES('rf9c0c026','scripts','{"scripted:@SCRIPT@": [1, 2]}');
INSERT INTO "run_value" VALUES('rf9c0c026','seconds','0.3440435639995485');
INSERT INTO "run_value" VALUES('rf9c0c026','told','[]');
CREATE TABLE said (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        run TEXT NOT NULL,
        speaker TEXT NOT NULL,
        body TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        sent_again INTEGER NOT NULL
    );
INSERT INTO "said" VALUES(1,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','user','{"speaker": "user", "text": "write the middle into notes.txt"}','""',1);
INSERT INTO "said" VALUES(2,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','assistant','{"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt"}, "id": "call_1", "name": "file_read", "raw": "{\"path\": \"notes.txt\"}"}]}','""',1);
INSERT INTO "said" VALUES(3,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','tool','{"speaker": "tool", "answers": [{"call": "call_1", "name": "file_read", "text": "     1 | begin"}]}','""',1);
INSERT INTO "said" VALUES(4,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','assistant','{"speaker": "assistant", "calls": [{"arguments": {"path": "notes.txt", "old": "begin\n", "new": "begin\nmiddle\n"}, "id": "call_2", "name": "strict_patch", "raw": "{\"path\": \"notes.txt\", \"old\": \"begin\\n\", \"new\": \"begin\\nmiddle\\n\"}"}]}','""',1);
INSERT INTO "said" VALUES(5,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','tool','{"speaker": "tool", "answers": [{"call": "call_2", "name": "strict_patch", "text": "changed notes.txt: 1 line; the syntax of ''.txt'' files is not checked"}]}','""',1);
INSERT INTO "said" VALUES(6,'2026-11-16T05:05:02.598+00:00',X'@WORKSPACE@','ce178831e','r6af49c03','assistant','{"speaker": "assistant", "text": "Written."}','""',1);
CREATE TABLE snapshot (
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        time TEXT NOT NULL,
        PRIMARY KEY (workspace, conversation, kind)
    ) WITHOUT ROWID
    ;
INSERT INTO "snapshot" VALUES(X'@WORKSPACE@','ce178831e','session','{"seen": [["notes.txt", "72dd223af541dd7fd5df48bef765603c5ca070ce3b42154ba1975bc2b7452625"]], "exchanges": [["write the middle into notes.txt", "Written."]], "accessed": [["notes.txt", "read"], ["notes.txt", "written"]], "edits": []}','2026-11-16T05:05:02.606+00:00');
INSERT INTO "snapshot" VALUES(X'@WORKSPACE@','ce178831e','worksheet','{"task": "write the middle into notes.txt", "done": ["strict_patch notes.txt"], "next": [], "read": ["notes.txt"]}','2026-11-16T05:05:02.614+00:00');
CREATE TABLE work (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL REFERENCES run (id),
        name TEXT NOT NULL,
        UNIQUE (run, name)
    );
INSERT INTO "work" VALUES(3,'r6af49c03','bench');
INSERT INTO "work" VALUES(4,'r6af49c03','shown');
CREATE TABLE work_change (
            work INTEGER NOT NULL REFERENCES work (id),
            path BLOB NOT NULL,
            before_kind TEXT,
            before_mode INTEGER,
            before_blob TEXT,
            after_kind TEXT,
            after_mode INTEGER,
            after_blob TEXT,
            PRIMARY KEY (work, path)
        ) WITHOUT ROWID
        ;
INSERT INTO "work_change" VALUES(3,X'6E6F7465732E747874','file',420,'72dd223af541dd7fd5df48bef765603c5ca070ce3b42154ba1975bc2b7452625','file',420,'015af9ec776baaac555b8c29f605e2454c4f21d9d4288c50604f810f4c9237b5');
INSERT INTO "work_change" VALUES(4,X'6E6F7465732E747874','file',420,'72dd223af541dd7fd5df48bef765603c5ca070ce3b42154ba1975bc2b7452625','file',420,'015af9ec776baaac555b8c29f605e2454c4f21d9d4288c50604f810f4c9237b5');
CREATE TRIGGER blob_in_use BEFORE DELETE ON blob WHEN OLD.refs > 0
    BEGIN SELECT RAISE(ABORT, 'the blob is in use'); END;
CREATE INDEX entry_of_workspace ON entry (workspace);
CREATE INDEX entry_prepared ON entry (workspace) WHERE state = 'prepared';
CREATE TRIGGER entry_change_named AFTER INSERT ON entry_change BEGIN
            SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
            WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
        END;
CREATE TRIGGER entry_change_dropped AFTER DELETE ON entry_change BEGIN
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
        END;
CREATE TRIGGER entry_change_not_updated BEFORE UPDATE ON entry_change
        BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;
CREATE TRIGGER checkpoint_change_named AFTER INSERT ON checkpoint_change BEGIN
            SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
            WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
        END;
CREATE TRIGGER checkpoint_change_dropped AFTER DELETE ON checkpoint_change BEGIN
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
        END;
CREATE TRIGGER checkpoint_change_not_updated BEFORE UPDATE ON checkpoint_change
        BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;
CREATE INDEX event_of_run ON event (workspace, run);
CREATE TRIGGER event_not_updated BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_not_deleted BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE INDEX request_of_run ON request (workspace, run);
CREATE TRIGGER request_not_updated BEFORE UPDATE ON request
    BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END;
CREATE TRIGGER request_not_deleted BEFORE DELETE ON request
    BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END;
CREATE INDEX said_in_conversation ON said (conversation);
CREATE INDEX said_in_workspace ON said (workspace, conversation);
CREATE TRIGGER said_not_updated BEFORE UPDATE ON said
    BEGIN SELECT RAISE(ABORT, 'what was said is written once'); END;
CREATE TRIGGER memory_added AFTER INSERT ON memory
    BEGIN INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text); END;
CREATE TRIGGER memory_forgotten AFTER DELETE ON memory
    BEGIN INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text); END;
CREATE TRIGGER memory_changed AFTER UPDATE OF text ON memory BEGIN
        INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text);
        INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text);
    END;
CREATE INDEX answer_by_use ON answer (used);
CREATE INDEX run_of_workspace ON run (workspace, created);
CREATE TRIGGER run_delivered BEFORE UPDATE OF delivery ON run
    WHEN OLD.delivery IS NOT NULL AND NEW.delivery IS NOT OLD.delivery
    BEGIN SELECT RAISE(ABORT, 'the delivery of a run is written once'); END;
CREATE TRIGGER run_not_deleted BEFORE DELETE ON run
    BEGIN SELECT RAISE(ABORT, 'the record of a run stays'); END;
CREATE TRIGGER evaluation_not_updated BEFORE UPDATE ON evaluation
    BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END;
CREATE TRIGGER evaluation_not_deleted BEFORE DELETE ON evaluation
    BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END;
CREATE TRIGGER work_change_named AFTER INSERT ON work_change BEGIN
            SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
            WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
        END;
CREATE TRIGGER work_change_dropped AFTER DELETE ON work_change BEGIN
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
        END;
CREATE TRIGGER work_change_not_updated BEFORE UPDATE ON work_change
        BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;
PRAGMA writable_schema=OFF;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',23);
INSERT INTO "sqlite_sequence" VALUES('request',4);
INSERT INTO "sqlite_sequence" VALUES('work',4);
INSERT INTO "sqlite_sequence" VALUES('said',6);
COMMIT;
PRAGMA user_version = 5;
