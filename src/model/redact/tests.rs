//! What is proven here: every kind is found as it stands, in JSON at two depths and broken over
//! lines; what is no secret is left alone; redacting twice changes nothing; nothing panics.
//!
//! Samples are made from pieces at run time: no key-like text stands in this file.

use super::*;
use proptest::prelude::*;

const LOWER: &str = "q7w3e9r1t5y2u8i4o6p0a3s7d1f9g5h2j8k4l6z0x3c7v1b9n5m";
const MIXED: &str = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6dF9gJ2kL5nM8pR1";
const UPPER: &str = "Q7W3E9R2T5Y4U7I4O6P2A3S7D5F6G5H2J3K4L6Z7X3C7V2B5N5M";
const HEX: &str = "3f9a7c1e5b8d2046af13c9e7b50d8264e1f7a93c5d08b2468ace";
const DIGITS: &str = "4071829365518293604718293";

fn some(alphabet: &str, len: usize) -> String {
    alphabet.chars().cycle().take(len).collect()
}
fn lower(len: usize) -> String {
    some(LOWER, len)
}
fn mixed(len: usize) -> String {
    some(MIXED, len)
}
fn upper(len: usize) -> String {
    some(UPPER, len)
}
fn hex(len: usize) -> String {
    some(HEX, len)
}
fn digits(len: usize) -> String {
    some(DIGITS, len)
}
fn uuid() -> String {
    let h = hex(32);
    format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
}
fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

struct Sample {
    kind: &'static str,
    before: String,
    secret: String,
}

/// A token that stands for itself.
fn own(kind: &'static str, prefix: &str, rest: impl AsRef<str>) -> Sample {
    Sample { kind, before: "use ".into(), secret: format!("{prefix}{}", rest.as_ref()) }
}

/// A secret known by what stands before it.
fn after(kind: &'static str, before: &str, secret: impl Into<String>) -> Sample {
    Sample { kind, before: before.into(), secret: secret.into() }
}

#[rustfmt::skip]
fn samples() -> Vec<Sample> {
    let mut all = vec![
        own("aws-access-key-id", "AKIA", upper(16)),
        own("aws-access-key-id", "ASIA", upper(16)),
        after("aws-secret-access-key", "aws_secret_access_key = ", mixed(40)),
        after("aws-secret-access-key", "\"SecretAccessKey\": \"", mixed(40)),
        after("aws-session-token", "aws_session_token=", mixed(200)),
        own("aws-bedrock-key", "ABSKQmVkcm9ja", mixed(100)),
        own("aws-mws-token", "amzn.mws.", uuid()),
        own("google-api-key", "AIza", mixed(35)),
        own("google-auth-key", "AQ.Ab", mixed(48)),
        own("google-oauth-secret", "GOCSPX-", mixed(28)),
        own("google-oauth-token", "ya29.", mixed(120)),
        own("google-refresh-token", "1//0", mixed(60)),
        own("google-hmac-key", "GOOG1", upper(56)),
        own("azure-storage-key", "AccountKey=", mixed(86) + "=="),
        own("azure-shared-access-key", "SharedAccessKey=", mixed(43) + "="),
        own("azure-sas-signature", "sig=", mixed(43) + "%3D"),
        own("azure-client-secret", "aB38", String::from("Q~") + &mixed(34)),
        own("azure-devops-token", &mixed(76), String::from("AZDO") + &mixed(4)),
        own("azure-ai-key", &mixed(52), String::from("JQQJ99") + &mixed(26)),
        own("alibaba-access-key-id", "LTAI", mixed(20)),
        own("tencent-secret-id", "AKID", mixed(32)),
        own("yandex-key", "AQVN", mixed(36)),
        own("digitalocean-token", "dop_v1_", hex(64)),
        own("heroku-key", "HRKU-", String::from("AA") + &mixed(58)),
        after("heroku-legacy-key", "HEROKU_API_KEY=", uuid()),
        own("cloudflare-token", "cfut_", mixed(48)),
        own("cloudflare-origin-key", "v1.0-", hex(24) + "-" + &hex(146)),
        after("cloudflare-legacy-key", "CLOUDFLARE_API_TOKEN=", mixed(40)),
        own("vercel-blob-token", "vercel_blob_rw_", mixed(16) + "_" + &mixed(30)),
        own("vercel-token", "vcp_", mixed(56)),
        own("netlify-token", "nfp_", mixed(36)),
        own("fly-token", "fm2_", mixed(200)),
        own("render-key", "rnd_", mixed(32)),
        own("tailscale-key", "tskey-", String::from("auth-") + &mixed(16) + "-" + &mixed(32)),
        own("pulumi-token", "pul-", hex(40)),
        own("terraform-token", &mixed(14), String::from(".atlasv1.") + &mixed(64)),
        own("vault-token", "hvs.", mixed(90)),
        own("doppler-token", "dp.pt.", mixed(43)),
        own("doppler-token", "dp.st.", String::from("dev.") + &mixed(43)),
        own("onepassword-service-token", "ops_eyJ", mixed(300)),
        own("onepassword-secret-key", "A3-", format!("{}-{}-{}-{}-{}", upper(6), upper(11), upper(5), upper(5), upper(5))),
        own("github-token", "ghp_", mixed(36)),
        own("github-oauth-token", "gho_", mixed(36)),
        own("github-user-token", "ghu_", mixed(36)),
        own("github-server-token", "ghs_", mixed(36)),
        own("github-refresh-token", "ghr_", mixed(76)),
        own("github-fine-grained-token", "github_pat_", mixed(22) + "_" + &mixed(59)),
        own("gitlab-token", "glpat-", mixed(20)),
        own("gitlab-token", "glpat-", mixed(40) + ".01." + &lower(9)),
        own("gitlab-deploy-token", "gldt-", mixed(20)),
        own("gitlab-runner-token", "glrt-", mixed(20)),
        own("gitlab-runner-token", "GR1348941", mixed(20)),
        own("gitlab-trigger-token", "glptt-", hex(40)),
        own("gitlab-job-token", "glcbt-", String::from("1a_") + &mixed(20)),
        own("gitlab-feed-token", "glft-", mixed(20)),
        own("gitlab-other-token", "glagent-", mixed(50)),
        own("bitbucket-token", "ATBB", mixed(32)),
        own("atlassian-token", "ATATT3", mixed(186)),
        own("npm-token", "npm_", mixed(36)),
        own("pypi-token", "pypi-Ag", mixed(150)),
        own("crates-io-token", "cio", mixed(32)),
        own("rubygems-key", "rubygems_", hex(48)),
        own("nuget-key", "oy2", lower(43)),
        own("clojars-token", "CLOJARS_", lower(60)),
        own("docker-token", "dckr_pat_", mixed(27)),
        own("artifactory-key", "AKCp", mixed(69)),
        own("artifactory-reference-token", "cmVmdGtu", mixed(56)),
        own("circleci-token", "CCIPAT_", mixed(22) + "_" + &hex(40)),
        own("buildkite-token", "bkua_", hex(40)),
        own("sonar-token", "sqp_", hex(40)),
        own("sourcegraph-token", "sgp_", hex(16) + "_" + &hex(40)),
        own("octopus-key", "API-", upper(26)),
        own("deno-token", "ddp_", mixed(36)),
        own("anthropic-key", "sk-ant-", String::from("api03-") + &mixed(93) + "AA"),
        own("anthropic-admin-key", "sk-ant-", String::from("admin01-") + &mixed(93) + "AA"),
        own("anthropic-oauth-token", "sk-ant-", String::from("oat01-") + &mixed(93) + "AA"),
        own("anthropic-session", "sk-ant-", String::from("sid01-") + &mixed(93) + "AA"),
        own("openai-key", "sk-", mixed(48)),
        own("openai-project-key", "sk-proj-", mixed(120)),
        own("openai-service-key", "sk-svcacct-", mixed(120)),
        own("openai-admin-key", "sk-admin-", mixed(120)),
        own("openai-session", "sess-", mixed(40)),
        own("openrouter-key", "sk-or-", String::from("v1-") + &hex(64)),
        own("langfuse-key", "sk-lf-", uuid()),
        own("langsmith-key", "lsv2_", String::from("pt_") + &hex(32) + "_" + &hex(10)),
        own("groq-key", "gsk_", mixed(52)),
        own("xai-key", "xai-", mixed(80)),
        own("perplexity-key", "pplx-", mixed(48)),
        own("replicate-token", "r8_", mixed(37)),
        own("cerebras-key", "csk-", lower(48)),
        own("nvidia-key", "nvapi-", mixed(64)),
        own("huggingface-token", "hf_", mixed(34)),
        own("huggingface-org-token", "api_org_", mixed(34)),
        own("together-key", "tgp_v1_", mixed(43)),
        own("tavily-key", "tvly-", String::from("dev-") + &mixed(32)),
        own("pinecone-key", "pcsk_", mixed(6) + "_" + &mixed(63)),
        own("e2b-key", "e2b_", hex(40)),
        own("firecrawl-key", "fc-", hex(32)),
        own("fireworks-key", "fw_", mixed(24)),
        own("elevenlabs-key", "sk_", hex(48)),
        own("slack-token", "xoxb-", digits(12) + "-" + &digits(13) + "-" + &mixed(24)),
        own("slack-app-token", "xapp-", String::from("1-A0") + &upper(9) + "-" + &digits(13) + "-" + &hex(64)),
        own("slack-config-token", "xoxe.", String::from("xoxp-1-") + &mixed(160)),
        own("slack-webhook", "hooks.slack.com/", String::from("services/T") + &upper(9) + "/B" + &upper(9) + "/" + &mixed(24)),
        after("discord-bot-token", "Discord login ", String::from("MT") + &mixed(24) + "." + &mixed(6) + "." + &mixed(38)),
        own("discord-webhook", "discord.com/api/webhooks/", digits(18) + "/" + &mixed(68)),
        own("telegram-bot-token", &digits(10), String::from(":AA") + &mixed(33)),
        own("teams-webhook", ".webhook.office.com/", format!("webhookb2/{}@{}/IncomingWebhook/{}/{}", uuid(), uuid(), hex(32), uuid())),
        own("twilio-key", "SK", hex(32)),
        after("twilio-auth-token", "TWILIO_AUTH_TOKEN=", hex(32)),
        own("sendgrid-key", "SG.", mixed(22) + "." + &mixed(43)),
        own("mailgun-key", "key-", hex(32)),
        after("mailgun-private-key", "MAILGUN_API_KEY=", hex(32) + "-" + &hex(8) + "-" + &hex(8)),
        own("mailchimp-key", &hex(32), "-us12"),
        own("brevo-key", "xkeysib-", hex(64) + "-" + &mixed(16)),
        own("resend-key", "re_", mixed(8) + "_" + &mixed(24)),
        own("stripe-secret-key", "sk_live_", mixed(24)),
        own("stripe-restricted-key", "rk_live_", mixed(99)),
        own("webhook-signing-secret", "whsec_", mixed(32)),
        own("shopify-token", "shpat_", hex(32)),
        own("square-token", "sq0atp-", mixed(22)),
        own("square-access-token", "EAAA", mixed(60)),
        own("braintree-token", "access_token$", String::from("production$") + &lower(16) + "$" + &hex(32)),
        own("plaid-token", "access-production-", uuid()),
        own("flutterwave-key", "FLWSECK", String::from("-") + &hex(32) + "-X"),
        own("easypost-key", "EZAK", mixed(54)),
        own("shippo-token", "shippo_", String::from("live_") + &hex(40)),
        own("duffel-token", "duffel_", String::from("live_") + &mixed(43)),
        after("datadog-key", "DD_API_KEY=", hex(32)),
        own("dynatrace-token", "dt0c01.", upper(24) + "." + &upper(64)),
        own("grafana-service-token", "glsa_", mixed(32) + "_" + &hex(8)),
        own("grafana-cloud-token", "glc_", mixed(120)),
        own("newrelic-key", "NRAK-", upper(27)),
        own("newrelic-license-key", &hex(36), "NRAL"),
        own("sentry-token", "sntrys_", String::from("eyJ") + &mixed(120)),
        own("posthog-key", "phx_", mixed(43)),
        own("infracost-key", "ico-", mixed(32)),
        own("launchdarkly-key", "sdk-", uuid()),
        own("databricks-token", "dapi", hex(32)),
        own("planetscale-token", "pscale_", String::from("tkn_") + &mixed(43)),
        own("supabase-token", "sbp_", hex(40)),
        own("neon-key", "napi_", lower(64)),
        own("airtable-token", "pat", mixed(14) + "." + &hex(64)),
        own("notion-token", "ntn_", mixed(46)),
        own("notion-token", "secret_", mixed(43)),
        own("linear-key", "lin_api_", mixed(40)),
        own("postman-key", "PMAK-", hex(24) + "-" + &hex(34)),
        own("figma-token", "figd_", mixed(44)),
        own("contentful-token", "CFPAT-", mixed(43)),
        own("hubspot-token", "pat-na1-", uuid()),
        own("mapbox-token", "sk.eyJ", mixed(80) + "." + &mixed(22)),
        own("typeform-token", "tfp_", mixed(44) + "_" + &mixed(14)),
        own("prefect-key", "pnu_", lower(36)),
        own("readme-key", "rdme_", lower(70)),
        own("maxmind-key", &mixed(6), String::from("_") + &mixed(29) + "_mmk"),
        own("adafruit-key", "aio_", mixed(28)),
        own("frameio-token", "fio-u-", mixed(64)),
        own("facebook-token", "EAA", String::from("Z") + &mixed(150)),
        own("twitter-bearer", &"A".repeat(21), mixed(25) + "%2" + &mixed(50)),
        own("rapidapi-key", &hex(10), String::from("msh") + &hex(15) + "p1" + &hex(6) + "jsn" + &hex(12)),
        after("okta-token", "SSWS ", String::from("00") + &mixed(40)),
        own("age-secret-key", "AGE-SECRET-KEY-", String::from("1") + &upper(58)),
        own("minisign-secret-key", "RWRTY0Iy", mixed(204)),
        own("private-key-base64", "", base64(&format!("-----{} RSA PRIVATE KEY-----\n{}\n", "BEGIN", mixed(64)))),
        after("jwk-private-key", "{\"kty\":\"EC\",\"d\":\"", mixed(43)),
        own("jwt", "eyJ", mixed(33) + ".eyJ" + &mixed(80) + "." + &mixed(43)),
        after("bearer-token", "Bearer ", mixed(32)),
        after("basic-auth", "Basic ", base64("alice:correct horse")),
        after("authorization-header", "Authorization: Token ", hex(40)),
        after("cookie", "Cookie: ", String::from("theme=dark; sid=") + &mixed(32)),
        after("session-cookie", "JSESSIONID=", upper(32)),
        after("netrc-password", "machine example.org login alice password ", "sw0rdf1sh9"),
        after("command-line-password", "sshpass -p ", "sw0rdf1sh9"),
        after("command-line-password", "mysql -u root -p", "sw0rdf1sh9"),
        after("command-line-password", "curl -u alice:", "sw0rdf1sh9"),
        after("password", "DB_PASSWORD=", "swordfish"),
        after("password", "DB_PASS=", "p(ss)w0rd&more;x"),
        after("password", "export PGPASSWORD='", "sword.fish"),
        after("password", "\"password\": \"", "hunter2hunter2"),
        after("password", "password = '", "Tr0ub4dor&3xy"),
        after("password", "--password ", "sw0rdf1sh9"),
        after("password", "<password>", "sw0rdf1sh9"),
        after("password", "[\"--password\", \"", "sw0rdf1sh9"),
        after("secret", "CLIENT_SECRET=", mixed(24)),
        after("secret", "\"clientSecret\": \"", mixed(24)),
        after("token", "MY_TOKEN=", hex(40)),
        after("token", "let token: &str = \"", hex(40)),
        after("token", "https://example.org/?access_token=", mixed(24)),
        after("api-key", "x-api-key: ", mixed(32)),
        after("api-key", "api_key: \"", hex(32)),
        after("access-key", "ACCESS_KEY=", mixed(24)),
        after("private-key-value", "PrivateKey = ", mixed(43) + "="),
        after("credential", "CREDENTIALS=", mixed(24)),
        after("auth", "\"auth\": \"", mixed(32)),
        after("key", "ENCRYPTION_KEY=", mixed(32)),
        after("url-password", "postgres://alice:", "sw0rdf1sh9"),
        after("url-token", "https://", hex(40)),
    ];
    // A key of another vendor that begins like ours.
    all.push(own("openai-key", "sk-", hex(32)));
    all
}

fn suffix(kind: &str) -> &'static str {
    if kind.starts_with("url-") { "@db.example.org/x" } else { "" }
}

/// Whether any run of the secret longer than 11 bytes is left.
fn leaks(text: &str, secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let len = bytes.len().min(12);
    bytes.windows(len).any(|part| memchr::memmem::find(text.as_bytes(), part).is_some())
}

fn as_json(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

#[test]
fn there_are_at_least_sixty_kinds_and_a_sample_for_each() {
    let kinds = kinds();
    assert!(kinds.len() >= 60, "{}", kinds.len());
    let sampled: BTreeSet<_> = samples().iter().map(|sample| sample.kind).collect();
    let by_blocks = ["private-key", "putty-private-key"];
    let missing: Vec<_> =
        kinds.iter().filter(|kind| !sampled.contains(*kind) && !by_blocks.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_kind_is_found_in_plain_text_and_in_json() {
    let mut failed = vec![];
    let (mut found, mut asked) = (0, 0);
    for sample in samples() {
        let Sample { kind, before, secret } = &sample;
        let close = match before.chars().last() {
            Some(quote @ ('"' | '\'')) => String::from(quote),
            _ => suffix(kind).into(),
        };
        let plain = format!("{before}{secret}{close}");
        let forms = [
            ("plain", plain.clone()),
            ("mid-text", format!("über\n$ {plain}\nand so on")),
            ("json", as_json(&format!("a line\n{plain}\n"))),
            ("json in json", as_json(&as_json(&format!("a line\n\t{plain}\nnext")))),
            ("diff", format!("@@ -1 +1 @@\n+{plain}\n")),
            ("unicode escapes", {
                let first = secret.chars().next().expect("not empty");
                format!(
                    "\"{}\\u{:04x}{}{}\"",
                    before.replace('"', "\\\""),
                    u32::from(first),
                    &secret[1..],
                    close.replace('"', "\\\"")
                )
            }),
        ];
        for (form, text) in forms {
            asked += 1;
            let out = redact(&text);
            if leaks(&out.text, secret) || (form == "plain" && !out.found.contains_key(*kind)) {
                failed.push(format!("{kind} ({form}): {:?} in {:?}", out.found, out.text));
                continue;
            }
            found += 1;
            assert_eq!(redact(&out.text).text, out.text, "{kind} ({form})");
        }
    }
    println!("{} kinds, recall {found} of {asked}", kinds().len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_token_broken_over_lines_is_found() {
    let mut failed = vec![];
    let (mut found, mut asked) = (0, 0);
    for sample in samples() {
        let Sample { kind, before, secret } = &sample;
        if before != "use " || secret.len() < 20 {
            continue;
        }
        let (a, b) = secret.split_at(secret.len() / 2);
        let forms = [
            format!("run it with {a}\n    {b}\nnext words"),
            format!("run it with {a}\\\n{b} next words"),
            format!("+run it with {a}\n+  {b}\n+next words"),
            format!("> run it with {a}\n> {b}\n> next words"),
            format!("  11→run it with {a}\n  12→    {b}\n  13→next words"),
            as_json(&format!("run it with {a}\n    {b}\nnext words")),
        ];
        for text in forms {
            asked += 1;
            let out = redact(&text);
            let spared = out.text.contains("next words") && out.text.contains("run it with");
            if leaks(&out.text, a) || leaks(&out.text, b) || !spared {
                failed.push(format!("{kind}: {:?} in {:?}", out.found, out.text));
            } else {
                found += 1;
            }
        }
    }
    println!("broken over lines: recall {found} of {asked}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn block(kind: &str, lines: usize) -> String {
    let body: Vec<_> = (0..lines).map(|n| mixed(64 + n).split_off(n)).collect();
    format!(
        "-----{} {kind}-----\n{}\n{}=\n-----{} {kind}-----",
        "BEGIN",
        body.join("\n"),
        mixed(19),
        "END"
    )
}

fn has_body(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.len() >= 19)
}

#[test]
fn private_keys_are_found_whole_torn_and_decorated() {
    for kind in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let key = block(kind, 6);
        let prefixed =
            |prefix: &str| key.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
        let numbered: String =
            key.lines().enumerate().map(|(n, line)| format!("{:6}→{line}\n", n + 7)).collect();
        let lines: Vec<_> = key.lines().collect();
        let forms = [
            key.clone(),
            key.replace('\n', "\r\n"),
            prefixed("+"),
            prefixed("-"),
            prefixed("> "),
            prefixed("    "),
            numbered,
            as_json(&key),
            as_json(&as_json(&key)),
            key.replace('\n', " "),
            key.lines().map(|line| format!("    \"{line}\\n\"\n")).collect(),
            lines[..5].join("\n"),
            lines[3..].join("\n"),
            as_json(&lines[..5].join("\n")),
        ];
        for (n, form) in forms.iter().enumerate() {
            let text = format!("before it\n{form}\nand after it");
            let out = redact(&text);
            assert!(!has_body(&out.text), "{kind}, form {n}: {}", out.text);
            assert!(
                out.text.contains("before it") && out.text.contains("after it"),
                "{kind}, form {n}: {}",
                out.text
            );
            assert_eq!(redact(&out.text).text, out.text);
        }
        assert_eq!(redact(&key).text, "[redacted:private-key]");
    }
    let putty = format!(
        "Encryption: none\nPrivate-Lines: 2\n{}\n{}=\nPrivate-MAC: x",
        mixed(64),
        mixed(23)
    );
    let out = redact(&putty);
    assert!(!has_body(&out.text) && out.found.contains_key("putty-private-key"), "{}", out.text);
}

#[test]
fn what_is_no_secret_is_left_alone() {
    let texts = [
        format!("commit {}", hex(40)),
        format!("checksum = \"{}\"", hex(64)),
        format!("\"integrity\": \"sha512-{}==\"", mixed(86)),
        format!("\"sessionId\": \"{}\"", uuid()),
        format!("id: {}", uuid()),
        format!("golang.org/x/net v0.1.0 h1:{}=", mixed(43)),
        "password = os.environ[\"DB_PASSWORD\"]".into(),
        "DB_PASSWORD=${DB_PASSWORD}".into(),
        "DB_PASSWORD=$DB_PASSWORD".into(),
        "token: process.env.API_TOKEN_2024,".into(),
        "API_KEY=<your key>".into(),
        "API_KEY=xxxxxxxxxxxxxxxx".into(),
        "PASSWORD=changeme".into(),
        "PASSWORD=".into(),
        "password: None".into(),
        "\"token\": null".into(),
        "let token = parser.next_token();".into(),
        "fn login(password: String, token: Option<Token2022>) {}".into(),
        "secret: SecretString,".into(),
        "password=password, token=token".into(),
        "max_tokens=4096 input_tokens: 128000".into(),
        "const SECRET_FLAG: u32 = 0x80550004;".into(),
        "Authorization: Bearer $TOKEN".into(),
        "Authorization: Bearer <token>".into(),
        "a bearer of good news, basic authentication".into(),
        "https://user:password@example.org and ssh://git@example.org/x.git".into(),
        "postgres://$USER:$PASS@localhost/db".into(),
        "docker run -u 1000:1000 image".into(),
        "sk-learn task-force risk-free-and-very-long-kebab-case-name".into(),
        format!("ghp_{}", "x".repeat(36)),
        format!("-----{} PRIVATE KEY-----\\n...", "BEGIN"),
        "the private key, the password and the token are kept elsewhere".into(),
        "\"password\": \"Password must have at least 8 characters\"".into(),
        "['x', 'pass', 'return_2nd'], ['pwd', 're_syntax9'], ['CURLOPT_PASSWORD', 'CURLOPT_READDATA']"
            .into(),
        "public_key: ed25519.Ed25519PublicKey, nid_key = self._lib.NID_aes_256_cbc".into(),
        "socat -u TCP4-LISTEN:3334,reuseaddr,fork".into(),
        "author: \"someone\" authors = [\"a\"] authority".into(),
        "src/auth/token_store_v2.rs:120: fn token_store_v2()".into(),
        "[redacted:github-token] password=[redacted:password]".into(),
    ];
    for text in texts {
        assert_eq!(find(&text), [], "{text}");
    }
}

#[test]
fn lists_of_tokens_are_counted_each() {
    let text =
        format!("ghp_{}\nghp_{}\nAKIA{}\nAKIA{}\n", mixed(36), mixed(40), upper(16), upper(16));
    let out = redact(&text);
    let expected = "[redacted:github-token]\n[redacted:github-token]\n[redacted:aws-access-key-id]\n[redacted:aws-access-key-id]\n";
    assert_eq!(out.text, expected);
    assert_eq!(out.found["github-token"], 2);
    assert_eq!(out.found["aws-access-key-id"], 2);
}

#[test]
fn files_are_read_by_line_and_binary_ones_not_at_all() {
    let text = format!("a\nb\nKEY=ghp_{}\n\nDB_PASSWORD=swordfish\n", mixed(36));
    assert_eq!(find_in_bytes(text.as_bytes()), [("github-token", 3), ("password", 5)]);
    let mut bytes = text.into_bytes();
    bytes.insert(0, 0xff);
    assert_eq!(find_in_bytes(&bytes).len(), 2);
    bytes.insert(0, 0);
    assert_eq!(find_in_bytes(&bytes), []);
}

#[test]
fn every_pattern_compiles() {
    for index in 0..RULES.len() {
        pattern(index);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~\\n\\\\\"é→]{0,12}",
        proptest::sample::select(
            samples().into_iter().map(|s| s.before + &s.secret).collect::<Vec<_>>()
        ),
        proptest::sample::select(
            RULES.iter().flat_map(|rule| rule.words).map(|w| (*w).to_owned()).collect::<Vec<_>>()
        ),
        proptest::sample::select(vec![
            block("PRIVATE KEY", 2),
            "[redacted:jwt]".into(),
            "[redacted:".into(),
            "://".into(),
            "\\u00".into(),
            "password".into(),
            "=\"".into()
        ]),
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let once = redact(&text);
        let twice = redact(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.found.is_empty());
        let hits = find(&text);
        prop_assert!(hits.iter().all(|hit| hit.start < hit.end && hit.end <= text.len()));
        prop_assert!(hits.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
        find_in_bytes(&bytes);
        redact(&text);
        redact(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn what_is_not_seen_parts_no_token() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    for unseen in [
        "\0",
        "\u{7}",
        "\u{8}",
        "\u{7f}",
        "\u{200b}",
        "\u{ad}",
        "\u{feff}",
        "\u{202e}",
        "\u{2060}",
        "\u{1b}[31m",
        "\u{1b}]8;;http://a\u{7}",
        "\u{1b}]0;t\u{1b}\\",
        "\u{1b}(B",
        "<U+200B>",
        "\\u200b",
        "\0\0\u{1b}[0m\u{ad}",
    ] {
        for at in [2, 4, 20, 39] {
            let (head, rest) = token.split_at(at);
            let text = format!("with {head}{unseen}{rest} done");
            let clean = redact(&text).text;
            assert_eq!(clean, "with [redacted:github-token] done", "{text:?}");
        }
        let (head, rest) = token.split_at(20);
        let (middle, last) = rest.split_at(9);
        let text = format!("{head}{unseen}{middle}\n{last}\n");
        assert!(!redact(&text).text.contains(middle), "{text:?}");
        // It stands between two things, too; what follows a password's name is taken for one.
        for text in [format!("A=b{unseen}USER={unseen}HOME=/root"), format!("a{unseen}b")] {
            assert_eq!(redact(&text).text, text);
        }
    }
}
