//! A secret of each kind, made from pieces at run time: no key-like text stands in this file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

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
pub(super) fn mixed(len: usize) -> String {
    some(MIXED, len)
}
pub(super) fn upper(len: usize) -> String {
    some(UPPER, len)
}
pub(super) fn hex(len: usize) -> String {
    some(HEX, len)
}
fn digits(len: usize) -> String {
    some(DIGITS, len)
}
pub(super) fn uuid() -> String {
    let h = hex(32);
    format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
}
fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

pub(super) struct Sample {
    pub(super) kind: &'static str,
    pub(super) before: String,
    pub(super) secret: String,
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
pub(super) fn samples() -> Vec<Sample> {
    vec![
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
        // A key of another vendor that begins like ours.
        own("openai-key", "sk-", hex(32)),
    ]
}
