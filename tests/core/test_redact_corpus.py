"""Real shapes of secrets are found, and what only looks like one survives: code must reach a model as it is."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest

from pawl.core.redact import MARK, redacted, redacted_each

pytestmark = pytest.mark.spec("B13")

_dice = random.Random(20261115)


def made(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    """What a machine makes: the same in each run, and stored nowhere as it is."""
    return "".join(_dice.choice(letters) for _ in range(size - 3)) + "a7Q"


KEY = made(40)
HEX = _dice.randbytes(16).hex()
BASE64 = base64.b64encode(_dice.randbytes(64)).decode()
PEM_BODY = base64.b64encode(_dice.randbytes(300)).decode()
PEM = "-----BEGIN PRIVATE KEY-----\n" + PEM_BODY + "\n-----END PRIVATE KEY-----\n"

CONNECTIONS = {
    "postgres": ("postgres://app:s3cr/t-Pw@db:5432/x", "s3cr/t-Pw"),
    "postgres with a driver": ("postgresql+asyncpg://app:hunter2@db/x", "hunter2"),
    "an at sign in the password": ("mysql://app:p@ss-w0rd@db/x", "p@ss-w0rd"),
    "mongodb+srv": (f"mongodb+srv://u:{KEY}@cluster0.example.net/?retryWrites=true", KEY),
    "amqp": ("amqp://guest:swordfish@queue:5672/", "swordfish"),
    "redis without a user": ("REDIS_URL=redis://:swordfish@cache:6379/0", "swordfish"),
    "ADO": ("Server=db;User Id=sa;Password=Sword;fish", "Sword"),
    "ADO, short name": ("Data Source=db;Uid=sa;Pwd=swordfish;Encrypt=True", "swordfish"),
    "libpq": ("host=db user=app password=swordfish dbname=x", "swordfish"),
    "JDBC": ("jdbc:mysql://db/x?user=app&password=swordfish&ssl=true", "swordfish"),
    "JDBC of Oracle": ("jdbc:oracle:thin:scott/sw0rdfish@db:1521:x", "sw0rdfish"),
    "an Azure account": (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={BASE64};Suffix=x", BASE64),
    "an Azure service bus": (f"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={BASE64[:44]}", BASE64[:44]),
    "a shared access signature": (f"https://a.blob.core.example/c?sv=2024&sig={KEY}%3D&se=2027", KEY),
    "a presigned address": (f"https://s3.example/x?X-Amz-Expires=60&X-Amz-Signature={HEX}{HEX}", HEX),
    "Sentry": (f"dsn: https://{HEX}@o1.ingest.example/2", HEX),
}

NAMED = {
    "an AWS file of credentials": (f"[default]\naws_secret_access_key = {KEY[:20]}/{KEY[20:]}\nregion = x", KEY[20:]),
    "an AWS CSV": (f"me,AKIAIOSFODNN7EXAMPLE,{made(40)}\n", "AKIAIOSFODNN7EXAMPLE"),
    "a line of .env": (f"A=1\nSTRIPE_TOKEN={KEY}\nB=2", KEY),
    "a line of .env with signs": ("DB_PASSWORD=p@ss,w0rd&(x)!\nB=2", "w0rd&(x)!"),
    "a line of .env with a short word": ("DB_PASSWORD=swordfish", "swordfish"),
    "lines of .env inside JSON": (json.dumps({"text": f"A=1\nAPI_KEY={KEY}\nB=2"}), KEY),
    "a token behind an escaped line end": (json.dumps({"text": f"use\nsk-proj-{KEY}"}), KEY),
    "compose": ("environment:\n  POSTGRES_PASSWORD: swordfish\n", "swordfish"),
    "YAML": ("db:\n  password: swordfish\n  port: 1", "swordfish"),
    "properties": ("db.user=app\ndb.password=swordfish\n", "swordfish"),
    "INI": ("[db]\npassword = hunter2\n", "hunter2"),
    "XML": ("<user>a</user><password>swordfish</password>", "swordfish"),
    "an attribute of XML": (f'<add key="ApiKey" value="{KEY}" />', KEY),
    "a name and a value of Kubernetes": ('- name: DB_PASSWORD\n  value: "swordfish"\n', "swordfish"),
    "a name and a value of JSON": ('{"name": "DB_PASSWORD", "value": "swordfish"}', "swordfish"),
    "kubeconfig": (f"    client-key-data: {BASE64 * 20}\n", BASE64),
    "docker's file": (f'{{"auths": {{"r": {{"auth": "{base64.b64encode(b"user:swordfish99").decode()}"}}}}}}', "dXNlc"),
    "npmrc": (f"//registry.example/:_authToken={KEY}", KEY),
    "netrc": ("machine example login me password swordfish", "swordfish"),
    "Python": ('DB = connect(user="a", password="swordfish")', "swordfish"),
    "Python with a type": (f'api_key: str | None = "{KEY}"', KEY),
    "Python by index": (f'environ["OPENAI_API_KEY"] = "{KEY}"', KEY),
    "Python, a pair": (f'os.environ.setdefault("OPENAI_API_KEY", "{KEY}")', KEY),
    "Go": (f'apiKey := "{KEY}"', KEY),
    "Go with a type": (f'var apiKey string = "{KEY}"', KEY),
    "JavaScript": (f"const clientSecret = `{KEY}`;", KEY),
    "Java": (f'private static final String ACCESS_TOKEN = "{KEY}";', KEY),
    "C": ('char password[] = "swordfish";', "swordfish"),
    "a comparison": ('if password == "swordfish":', "swordfish"),
    "an escaped quote inside": ('password = "sword\\"fish"', 'fish"'),
    "prose": ("the password is hunter2, do not tell", "hunter2"),
    "a number at the end of the name": (f"API_KEY_2={KEY}", KEY),
    "a stage at the end of the name": (f'token_prod: "{KEY}"', KEY),
    "a high entropy beside a name that says little": (f'"session_token_id": "{KEY}"', KEY),
    "a signing key": (f"signing-key: {HEX}", HEX),
    "a UUID as a token": ("token: 1b4e28ba-2fa1-41d2-883f-0016d3cca427", "2fa1"),
    "a Google service account": (
        json.dumps({"type": "service_account", "private_key_id": HEX, "private_key": PEM, "client_email": "a@b"}),
        PEM_BODY[:64],
    ),
    "the id of its key": (json.dumps({"private_key_id": HEX, "private_key": PEM}), HEX),
}

SHAPES = {
    "a private key in escaped JSON": (json.dumps(PEM), PEM_BODY[100:160]),
    "a private key in JSON twice": (json.dumps(json.dumps(PEM)), PEM_BODY[100:160]),
    "a private key in one line": (PEM.replace("\n", " "), PEM_BODY[100:160]),
    "a private key in pieces": ("\n".join(f'    "{line}\\n"' for line in PEM.splitlines()), PEM_BODY[100:160]),
    "a private key in pieces, cut": (f'"-----BEGIN RSA PRIVATE KEY-----\\n"\n"{PEM_BODY}\\n"', PEM_BODY[100:160]),
    "a Slack webhook": (f"https://hooks.slack.com/services/T0AB/B0CD/{KEY[:24]}", KEY[:24]),
    "a Discord webhook": (f"https://discord.com/api/webhooks/1234567890/{KEY}", KEY),
    "a Discord bot": (f"Authorization: Bot MTk4{made(20)}.Cl2FMQ.{made(27)}", "Cl2FMQ"),
    "a Telegram bot": (f"https://api.telegram.example/bot123456789:AA{KEY[:33]}/getMe", KEY[:33]),
    "a Google client": (f"GOCSPX-{KEY[:28]}", KEY[:28]),
    "an Azure client": (f"abc8Q~{KEY[:32]}", KEY[:32]),
    "Vault": (f"hvs.{KEY}", KEY),
    "Databricks": (f"dapi{HEX}", HEX),
    "Grafana": (f"glsa_{KEY}", KEY),
    "Docker": (f"dckr_pat_{KEY}", KEY),
    "a key in the query of Gemini": (f"https://host/v1/models?key={KEY}", KEY),
    "a basic header": (f"Authorization: Basic {base64.b64encode(b'user:swordfish').decode()}", "dXNlcjpzd29yZGZpc2g"),
    "an OAuth header": (f'Authorization: OAuth realm="x", oauth_token="{KEY}"', KEY),
    "a user and a token in a command": (f"curl --user me:{KEY} https://host", KEY),
}

HIDDEN = {**CONNECTIONS, **NAMED, **SHAPES}


@pytest.mark.parametrize("where", HIDDEN)
def test_a_secret_of_a_real_shape_is_hidden(where: str) -> None:
    text, secret = HIDDEN[where]
    assert secret in text
    shown = redacted(text)
    assert secret not in shown
    assert MARK in shown
    assert redacted(shown) == shown


def test_many_texts_are_redacted_as_each_alone() -> None:
    texts = [*(text for text, _ in HIDDEN.values()), *SURVIVES, ""]
    assert redacted_each(texts) == [redacted(text) for text in texts]
    assert redacted_each(["def f(a, b)", ""]) == ["def f(a, b)", ""]


SURVIVES = [
    # Names of things that are no secrets, and secrets' names with no secret beside them.
    "token_count = 12",
    "max_tokens: 4096",
    '{"max_tokens": 4096, "token_type": "bearer", "tokenizer": "cl100k_base"}',
    "usage: tokens=12345 input_tokens: 99",
    "token = tokens[index + 1]",
    "token = lexer.next_token()",
    "token: Token = self.peek()",
    "def login(user: str, password: str, token: str | None = None) -> Secret:",
    "async def f(token: str, secret: bytes = b''): ...",
    "self.password = password",
    "password = getpass.getpass('Password: ')",
    "password=password, api_key=api_key, token=self.token2,",
    "api_key = os.environ['OPENAI_API_KEY']",
    'api_key = os.getenv("OPENAI_API_KEY", "")',
    "secret = secrets.token_hex(32)",
    "const token = await getOAuth2Token(client);",
    "interface Login { password: string; token?: string }",
    "  password: string\n  token: Token\n",
    "struct Login { token: u64, secret: Vec<u8> }",
    "if token == 0x2f: return Token.SLASH",
    "case Token.KEY: return 'key'",
    "for key in keys: cache_key = f'{key}:{value}'",
    'headers = {"Authorization": f"Bearer {token}"}',
    'headers["Authorization"] = "Bearer " + token',
    "Authorization: Bearer <your token>",
    'Authorization: `Basic ${btoa(user + ":" + password)}`',
    "export OPENAI_API_KEY=<your-key>",
    "export OPENAI_API_KEY=your-api-key-here",
    "API_KEY=${API_KEY:-changeme}",
    "DATABASE_URL=postgres://user:password@localhost/db",
    'url = f"postgres://{user}:{password}@{host}/db"',
    "https://${USER}:${TOKEN}@github.com/x/y",
    '"password": "Enter your password"',
    'label = {"password": "Password", "token": "Token"}',
    "pass `--token TOKEN` or the --password option to the command",
    'parser.add_argument("--api-key", help="the key")',
    'TOKEN_URL = "https://example.com/oauth2/token"',
    "token_file: /run/secrets/token_v2",
    'secretName: "my-app-credentials-v2"',
    "credentials: 'include'",
    'Token: "#d8dee9"',
    "PWD=/home/user/project/src2 OLDPWD=/home/user",
    "author = Jane Doe, authority: 3rd",
    "public_key = AAAAB3NzaC1yc2EAAAADAQABAAABgQC7vbqajDhA",
    "password_hash: 5f4dcc3b5aa765d61d8327deb882cf99",
    "keyboard: qwerty123, monkey=banana4you",
    "Basic refactoring; Bearer AuthenticationFilter; basic OAuth2ClientConfig",
    "session.cookie: req.headers.cookie",
    "docker run -u 1000:1000 image",
    'BEGIN = "-----BEGIN PRIVATE KEY-----"\nEND = "-----END PRIVATE KEY-----"',
    "if '-----BEGIN RSA PRIVATE KEY-----' in text:\n    found = True",
    ".sk-folding-cube-animation-wrapper .sk-cube-grid-parent-large { }",
    "npm_config_cache npm_lifecycle_event hf_hub_download_with_progress_and_retries",
    "std::unordered_map<Token, int> token_map{};",
    "mail me at user@example.com: see http://localhost:8000/a@b",
    # What machines make, with nothing beside it that names a secret.
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "id: 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    'hash = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"',
    '"integrity": "sha512-' + BASE64 + '"',
    'checksum = "' + HEX + '"',
    "IMAGE = 'data:image/png;base64," + base64.b64encode(_dice.randbytes(600)).decode() + "'",
    "idx_users_2024_01_partition_key_v2_backfill",
    "https://example.com/a/" + HEX + "?page=2&sort=key",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" + KEY + " me@host",
]


@pytest.mark.parametrize("text", SURVIVES)
def test_what_is_no_secret_survives(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ['{"password": 12345678, "token": true}', json.dumps({"a": 'say "token": "x1y2z3w4"'})]
)
def test_what_was_json_is_still_json(text: str) -> None:
    json.loads(redacted(text))


HOSTILE = [
    "token='", "token=`", 'token=\\"', "token: a", "password is ", "authorization: a1", "cookie:", "://a:b", "://a:b@c",
    "://aaaaaaaaaaaaaaaaaaaaaaaa", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----a", "sk-a", "sk-a1",
    "key", "key_", "keykey=", "auth.", "secret -", "login a password ", '"token", ', "token value: ", "<token>a</",
    "&sig=", "AKIA0", "Basic a1=", "{", "token={", "token=${", "token=%s<", "PASSWORD=a\\", "api_key:x ", "pwd=a1b2;",
    "jdbc:oracle:thin:a/", "-u a:b ", "İtoken=1", "\\nTOKEN=", "eyJaaaaaaaaa.bbbbbbbbb.",
]  # fmt: skip


@pytest.mark.timeout(30)
@pytest.mark.parametrize("part", HOSTILE)
def test_no_text_takes_long(part: str) -> None:
    redacted(part * (200_000 // len(part)))


def test_a_letter_that_grows_when_it_is_made_small_moves_nothing() -> None:
    assert redacted(f"İİİ PASSWORD={KEY} İ") == f"İİİ PASSWORD={MARK} İ"


def test_half_of_a_character_is_no_obstacle() -> None:
    assert redacted(f"\ud800 token={KEY} \udfff") == f"\ud800 token={MARK} \udfff"
