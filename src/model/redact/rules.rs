//! The table of what is a secret by its own form: prefix, alphabet and length as its vendor
//! documents them. Check digits are not tested: a mistyped key and a made-up one are no safer to
//! pass on.
//!
//! A row runs only where one of its words stands, and only from there. Words are found whatever
//! their case; the pattern decides on case. Where two rows overlap, the upper one gives the name.

/// How sure the prefix alone makes us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing else looks like it: all but a row of `x` is a secret.
    Telling,
    /// Words and identifiers begin like it: the rest must look random.
    Loose,
}

#[derive(Clone, Copy)]
pub enum Form {
    /// The pattern is the token, up to `lead` bytes of which stand before the word. May be broken
    /// over lines.
    Token { lead: usize, prefix: Prefix, pattern: &'static str },
    /// A name that begins with the word, an assignment, and a value of this form: for vendors
    /// whose tokens have no prefix.
    Named { pattern: &'static str },
    /// The first group is the secret, if it looks random or like a password.
    Around { pattern: &'static str, gate: Gate },
}

/// What the group of [`Form::Around`] must look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Not a placeholder.
    Password,
    /// Letters and digits mixed.
    Mixed,
    /// Base64 of `user:password`.
    Basic,
    /// `name=value` pairs, one of which looks random.
    Cookies,
}

pub struct Rule {
    pub kind: &'static str,
    pub words: &'static [&'static str],
    pub form: Form,
}

const fn token(kind: &'static str, words: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { kind, words, form: Form::Token { lead: 0, prefix: Prefix::Telling, pattern } }
}

const fn loose(kind: &'static str, words: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { kind, words, form: Form::Token { lead: 0, prefix: Prefix::Loose, pattern } }
}

const fn inner(
    kind: &'static str,
    words: &'static [&'static str],
    lead: usize,
    pattern: &'static str,
) -> Rule {
    Rule { kind, words, form: Form::Token { lead, prefix: Prefix::Loose, pattern } }
}

const fn named(kind: &'static str, words: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { kind, words, form: Form::Named { pattern } }
}

const fn around(
    kind: &'static str,
    words: &'static [&'static str],
    gate: Gate,
    pattern: &'static str,
) -> Rule {
    Rule { kind, words, form: Form::Around { pattern, gate } }
}

#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    // Clouds and hosting.
    token("aws-access-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}"),
    named("aws-secret-access-key", &["secret_access_key", "secretaccesskey", "secret-access-key", "aws_secret"], r"[A-Za-z0-9/+]{40}"),
    named("aws-session-token", &["aws_session_token", "sessiontoken", "x-amz-security-token"], r"[A-Za-z0-9/+=%]{80,2000}"),
    token("aws-bedrock-key", &["ABSKQmVkcm9ja", "bedrock-api-key-"], r"(?:ABSKQmVkcm9ja|bedrock-api-key-)[A-Za-z0-9+/=]{60,1200}"),
    token("aws-mws-token", &["amzn.mws."], r"amzn\.mws\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    token("google-api-key", &["AIza"], r"AIza[A-Za-z0-9_-]{35}"),
    loose("google-auth-key", &["AQ.Ab"], r"AQ\.Ab[A-Za-z0-9_-]{40,120}"),
    token("google-oauth-secret", &["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{28}"),
    token("google-oauth-token", &["ya29."], r"ya29\.[A-Za-z0-9_-]{20,2000}"),
    loose("google-refresh-token", &["1//0"], r"1//0[A-Za-z0-9_-]{40,200}"),
    token("google-hmac-key", &["GOOG1"], r"GOOG1[A-Z0-9]{56,58}"),
    token("azure-storage-key", &["accountkey="], r"(?i:accountkey)=[A-Za-z0-9+/]{86}=="),
    token("azure-shared-access-key", &["sharedaccesskey="], r"(?i:sharedaccesskey)=[A-Za-z0-9+/]{43}="),
    token("azure-sas-signature", &["sig="], r"sig=[A-Za-z0-9%+/]{43,80}(?:=|%3[Dd])"),
    inner("azure-client-secret", &["Q~"], 4, r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    inner("azure-devops-token", &["AZDO"], 76, r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    inner("azure-ai-key", &["JQQJ99"], 52, r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),
    token("alibaba-access-key-id", &["LTAI"], r"LTAI[A-Za-z0-9]{16,26}"),
    loose("tencent-secret-id", &["AKID"], r"AKID[A-Za-z0-9]{32}"),
    loose("yandex-key", &["AQVN"], r"AQVN[A-Za-z0-9_-]{35,38}"),
    token("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}"),
    token("heroku-key", &["HRKU-"], r"HRKU-[A-Za-z0-9_-]{36,80}"),
    named("heroku-legacy-key", &["heroku_api", "heroku_key", "herokuapi"], r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    loose("cloudflare-token", &["cfut_", "cfat_", "cfk_"], r"cf(?:ut|at|k)_[A-Za-z0-9]{40,64}"),
    token("cloudflare-origin-key", &["v1.0-"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    named("cloudflare-legacy-key", &["cloudflare", "cf_api", "cf_token"], r"(?:[A-Za-z0-9_-]{40}|[0-9a-f]{37})"),
    token("vercel-blob-token", &["vercel_blob_rw_"], r"vercel_blob_rw_[A-Za-z0-9]{10,30}_[A-Za-z0-9]{20,60}"),
    loose("vercel-token", &["vcp_", "vci_", "vca_", "vcr_", "vck_"], r"vc[piark]_[A-Za-z0-9]{24,80}"),
    loose("netlify-token", &["nfp_"], r"nfp_[A-Za-z0-9]{36,64}"),
    token("fly-token", &["fm2_", "fm1r_", "fm1a_", "fo1_"], r"(?:fm2_|fm1[ra]_|fo1_)[A-Za-z0-9+/=_-]{40,2000}"),
    loose("render-key", &["rnd_"], r"rnd_[A-Za-z0-9]{28,40}"),
    token("tailscale-key", &["tskey-"], r"tskey-[a-z]{3,12}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{16,48}"),
    token("pulumi-token", &["pul-"], r"pul-[0-9a-f]{40}"),
    inner("terraform-token", &[".atlasv1."], 14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}"),
    token("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    token("doppler-token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[a-z0-9_-]{2,35})?)\.[A-Za-z0-9]{40,44}"),
    token("onepassword-service-token", &["ops_eyJ"], r"ops_eyJ[A-Za-z0-9+/_-]{200,2000}={0,2}"),
    loose("onepassword-secret-key", &["A3-"], r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),

    // Forges, registries and builds.
    token("github-token", &["ghp_"], r"ghp_[A-Za-z0-9]{36,255}"),
    token("github-oauth-token", &["gho_"], r"gho_[A-Za-z0-9]{36,255}"),
    token("github-user-token", &["ghu_"], r"ghu_[A-Za-z0-9]{36,255}"),
    token("github-server-token", &["ghs_"], r"ghs_[A-Za-z0-9]{36,255}"),
    token("github-refresh-token", &["ghr_"], r"ghr_[A-Za-z0-9]{36,255}"),
    token("github-fine-grained-token", &["github_pat_"], r"github_pat_[A-Za-z0-9_]{40,255}"),
    token("gitlab-token", &["glpat-"], r"glpat-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?"),
    token("gitlab-deploy-token", &["gldt-"], r"gldt-[A-Za-z0-9_-]{20,64}"),
    token("gitlab-runner-token", &["glrt-", "glrtr-", "GR1348941"], r"(?:glrtr?-(?:t[0-9]_)?|GR1348941)[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?"),
    token("gitlab-trigger-token", &["glptt-"], r"glptt-[A-Za-z0-9_-]{20,64}"),
    token("gitlab-job-token", &["glcbt-"], r"glcbt-[A-Za-z0-9]{1,5}_[A-Za-z0-9_-]{20,64}"),
    token("gitlab-feed-token", &["glft-"], r"glft-[A-Za-z0-9_-]{20,100}"),
    token("gitlab-other-token", &["glsoat-", "glagent-", "glimt-", "gloas-", "glffct-", "glwt-"], r"gl(?:soat|agent|imt|oas|ffct|wt)-[A-Za-z0-9_-]{20,80}"),
    token("bitbucket-token", &["ATBB"], r"ATBB[A-Za-z0-9_=-]{28,64}"),
    token("atlassian-token", &["ATATT3", "ATCTT3", "ATSTT3"], r"AT[ACS]TT3[A-Za-z0-9_=-]{60,300}"),
    token("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36}"),
    token("pypi-token", &["pypi-Ag"], r"pypi-Ag[A-Za-z0-9_-]{50,1000}"),
    loose("crates-io-token", &["cio"], r"cio[A-Za-z0-9]{32}"),
    token("rubygems-key", &["rubygems_"], r"rubygems_[0-9a-f]{48}"),
    loose("nuget-key", &["oy2"], r"oy2[a-z0-9]{43}"),
    token("clojars-token", &["CLOJARS_"], r"CLOJARS_[a-z0-9]{60}"),
    token("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_-]{27,64}"),
    token("artifactory-key", &["AKCp"], r"AKCp[A-Za-z0-9]{60,80}"),
    token("artifactory-reference-token", &["cmVmdGtu"], r"cmVmdGtu[A-Za-z0-9]{56}"),
    token("circleci-token", &["CCIPAT_", "CCIPRJ_"], r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    token("buildkite-token", &["bkua_"], r"bkua_[0-9a-f]{40}"),
    token("sonar-token", &["sqp_", "squ_", "sqa_"], r"sq[pua]_[0-9a-f]{40}"),
    token("sourcegraph-token", &["sgp_"], r"sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}"),
    loose("octopus-key", &["API-"], r"API-[A-Z0-9]{26,32}"),
    loose("deno-token", &["ddp_", "ddo_"], r"dd[po]_[A-Za-z0-9]{34,44}"),

    // Models.
    token("anthropic-admin-key", &["sk-ant-admin"], r"sk-ant-admin[0-9]{2}-[A-Za-z0-9_-]{20,200}"),
    token("anthropic-oauth-token", &["sk-ant-oat", "sk-ant-ort"], r"sk-ant-o[ar]t[0-9]{2}-[A-Za-z0-9_-]{20,200}"),
    token("anthropic-session", &["sk-ant-sid"], r"sk-ant-sid[0-9]{2}-[A-Za-z0-9_-]{20,200}"),
    token("anthropic-key", &["sk-ant-"], r"sk-ant-(?:api[0-9]{2}-)?[A-Za-z0-9_-]{16,200}"),
    token("openai-project-key", &["sk-proj-"], r"sk-proj-[A-Za-z0-9_-]{20,250}"),
    token("openai-service-key", &["sk-svcacct-", "sk-service-", "sk-None-"], r"sk-(?:svcacct|service|None)-[A-Za-z0-9_-]{20,250}"),
    token("openai-admin-key", &["sk-admin-"], r"sk-admin-[A-Za-z0-9_-]{20,250}"),
    loose("openai-key", &["sk-"], r"sk-[A-Za-z0-9]{20,100}"),
    loose("openai-session", &["sess-"], r"sess-[A-Za-z0-9]{40}"),
    token("openrouter-key", &["sk-or-"], r"sk-or-(?:v[0-9]-)?[0-9a-f]{64}"),
    loose("langfuse-key", &["sk-lf-"], r"sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    token("langsmith-key", &["lsv2_"], r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    token("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{48,56}"),
    loose("xai-key", &["xai-"], r"xai-[A-Za-z0-9]{70,90}"),
    token("perplexity-key", &["pplx-"], r"pplx-[A-Za-z0-9]{40,56}"),
    token("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{37}"),
    loose("cerebras-key", &["csk-"], r"csk-[a-z0-9]{48}"),
    token("nvidia-key", &["nvapi-"], r"nvapi-[A-Za-z0-9_-]{60,70}"),
    loose("huggingface-token", &["hf_"], r"hf_[A-Za-z0-9]{30,40}"),
    loose("huggingface-org-token", &["api_org_"], r"api_org_[A-Za-z0-9]{34}"),
    loose("together-key", &["tgp_v1_"], r"tgp_v1_[A-Za-z0-9_-]{40,50}"),
    loose("tavily-key", &["tvly-"], r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,48}"),
    loose("pinecone-key", &["pcsk_"], r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,70}"),
    loose("e2b-key", &["e2b_"], r"e2b_[0-9a-f]{40}"),
    loose("firecrawl-key", &["fc-"], r"fc-[0-9a-f]{32}"),
    loose("fireworks-key", &["fw_"], r"fw_[A-Za-z0-9]{22,26}"),
    loose("elevenlabs-key", &["sk_"], r"sk_[0-9a-f]{48}"),

    // Messages and mail.
    token("slack-config-token", &["xoxe-", "xoxe."], r"xoxe[.-](?:xox[bp]-)?[0-9]-[A-Za-z0-9-]{20,300}"),
    token("slack-token", &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xoxo-"], r"xox[bparscdo]-[A-Za-z0-9%+/=-]{10,300}"),
    token("slack-app-token", &["xapp-"], r"xapp-[0-9]-[A-Za-z0-9-]{20,200}"),
    token("slack-webhook", &["hooks.slack.com/"], r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{30,120}"),
    around("discord-bot-token", &["discord", "bot "], Gate::Mixed, r"(?:discord[^\n]{0,60}?|bot )[^A-Za-z0-9_\n-]{0,3}([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})"),
    token("discord-webhook", &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{40,100}"),
    inner("telegram-bot-token", &[":AA"], 10, r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    token("teams-webhook", &[".webhook.office.com/"], r"\.webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{36,80}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}(?:/[A-Za-z0-9_-]{1,60})?"),
    token("twilio-key", &["SK"], r"SK[0-9a-f]{32}"),
    named("twilio-auth-token", &["twilio"], r"[0-9a-f]{32}"),
    token("sendgrid-key", &["SG."], r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    loose("mailgun-key", &["key-"], r"key-[0-9a-f]{32}"),
    named("mailgun-private-key", &["mailgun"], r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    inner("mailchimp-key", &["-us"], 32, r"[0-9a-f]{32}-us[0-9]{1,2}"),
    token("brevo-key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    loose("resend-key", &["re_"], r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),

    // Money and shops.
    token("stripe-secret-key", &["sk_live_", "sk_test_"], r"sk_(?:live|test)_[A-Za-z0-9]{16,250}"),
    token("stripe-restricted-key", &["rk_live_", "rk_test_"], r"rk_(?:live|test)_[A-Za-z0-9]{16,250}"),
    loose("webhook-signing-secret", &["whsec_"], r"whsec_[A-Za-z0-9+/]{24,80}={0,2}"),
    token("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    token("square-token", &["sq0atp-", "sq0csp-", "sq0idb-"], r"sq0(?:atp|csp|idb)-[A-Za-z0-9_-]{22,43}"),
    loose("square-access-token", &["EAAA"], r"EAAA[A-Za-z0-9_-]{60}"),
    token("braintree-token", &["access_token$"], r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    token("plaid-token", &["access-sandbox-", "access-development-", "access-production-"], r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    token("flutterwave-key", &["FLWSECK"], r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?"),
    token("easypost-key", &["EZAK", "EZTK"], r"EZ[AT]K[A-Za-z0-9]{54}"),
    token("shippo-token", &["shippo_"], r"shippo_(?:live|test)_[0-9a-f]{40}"),
    token("duffel-token", &["duffel_"], r"duffel_(?:live|test)_[A-Za-z0-9_=-]{40,50}"),

    // Watching and measuring.
    named("datadog-key", &["datadog", "dd_api", "dd_app", "dd-api", "dd-app"], r"(?:[0-9a-f]{40}|[0-9a-f]{32})"),
    token("dynatrace-token", &["dt0c01.", "dt0s01.", "dt0s16."], r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    token("grafana-service-token", &["glsa_"], r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    loose("grafana-cloud-token", &["glc_"], r"glc_[A-Za-z0-9+/]{32,400}={0,2}"),
    token("newrelic-key", &["NRAK-", "NRII-", "NRIQ-", "NRAA-", "NRSP-"], r"NR(?:AK|II|IQ|AA|SP)-[A-Za-z0-9_-]{24,40}"),
    inner("newrelic-license-key", &["NRAL"], 36, r"[0-9a-f]{36}NRAL"),
    token("sentry-token", &["sntrys_", "sntryu_"], r"sntry(?:s_eyJ[A-Za-z0-9+/=_-]{60,500}|u_[0-9a-f]{64})"),
    token("posthog-key", &["phx_"], r"phx_[A-Za-z0-9]{40,48}"),
    loose("infracost-key", &["ico-"], r"ico-[A-Za-z0-9]{32}"),
    loose("launchdarkly-key", &["sdk-"], r"sdk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),

    // Data, documents and the rest.
    token("databricks-token", &["dapi"], r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    token("planetscale-token", &["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    token("supabase-token", &["sbp_", "sb_secret_"], r"(?:sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{24,48})"),
    loose("neon-key", &["napi_"], r"napi_[a-z0-9]{60,70}"),
    inner("airtable-token", &["pat"], 0, r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    loose("notion-token", &["ntn_", "secret_"], r"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})"),
    token("linear-key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    token("postman-key", &["PMAK-", "PMAT-"], r"(?:PMAK-[0-9a-f]{24}-[0-9a-f]{34}|PMAT-[A-Z0-9]{26})"),
    token("figma-token", &["figd_", "figu_"], r"fig[du]_[A-Za-z0-9_-]{40,60}"),
    token("contentful-token", &["CFPAT-"], r"CFPAT-[A-Za-z0-9_-]{43}"),
    token("hubspot-token", &["pat-na", "pat-eu", "pat-ap"], r"pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    loose("mapbox-token", &["sk.eyJ"], r"sk\.eyJ[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{20,30}"),
    loose("typeform-token", &["tfp_"], r"tfp_[A-Za-z0-9_.=-]{40,64}"),
    loose("prefect-key", &["pnu_"], r"pnu_[A-Za-z0-9]{36}"),
    token("readme-key", &["rdme_"], r"rdme_[a-z0-9]{70}"),
    inner("maxmind-key", &["_mmk"], 36, r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    loose("adafruit-key", &["aio_"], r"aio_[A-Za-z0-9]{28}"),
    loose("frameio-token", &["fio-u-"], r"fio-u-[A-Za-z0-9_=-]{64}"),
    loose("facebook-token", &["EAA"], r"EAA[A-Za-z0-9]{100,300}"),
    loose("twitter-bearer", &["AAAAAAAAAAAAAAAAAAAAA"], r"A{21}[A-Za-z0-9]{5,60}%[A-Za-z0-9%]{30,120}"),
    inner("rapidapi-key", &["msh"], 10, r"[0-9a-f]{10}msh[0-9a-f]{15}p1[0-9a-f]{6}jsn[0-9a-f]{12}"),
    around("okta-token", &["SSWS "], Gate::Mixed, r"SSWS (00[A-Za-z0-9_-]{38,42})"),
    token("age-secret-key", &["AGE-SECRET-KEY-"], r"(?i:AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{50,120})"),
    token("minisign-secret-key", &["RWRTY0Iy"], r"RWRTY0Iy[A-Za-z0-9+/]{100,220}={0,2}"),
    token("private-key-base64", &["LS0tLS1CRUdJTi"], r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRFIEtFWS|BFQyBQUklWQVRFIEtFWS|BPUEVOU1NIIFBSSVZBVEUg|BEU0EgUFJJVkFURS|BFTkNSWVBURUQgUFJJVkFURS)[A-Za-z0-9+/]{20,20000}={0,2}"),
    around("jwk-private-key", &["\"d\""], Gate::Mixed, "\"d\"[ ]?:[ ]?\"([A-Za-z0-9_-]{40,700})\""),
    token("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,4000}\.(?:eyJ|[A-Za-z0-9_-]{0,800}\.)[A-Za-z0-9_-]{6,6000}(?:\.[A-Za-z0-9_-]{6,6000}){1,3}"),

    // Headers and command lines, whoever the vendor.
    around("bearer-token", &["bearer"], Gate::Mixed, r"(?i:bearer)(?: |\t|%20|\+){1,3}([A-Za-z0-9._~+/=-]{10,4000})"),
    around("basic-auth", &["basic "], Gate::Basic, r"(?i:basic) {1,3}([A-Za-z0-9+/_-]{6,800}={0,2})"),
    around("authorization-header", &["authorization"], Gate::Mixed, r#"(?i:authorization)["'\]]{0,2} ?(?:=>|[:=,]) ?["']?(?:[A-Za-z][A-Za-z0-9-]{1,20} )?([^\s"'<>`(){}]{12,2000})"#),
    around("cookie", &["cookie"], Gate::Cookies, r#"(?i:cookie)["']? ?: ?["']?([^\r\n"'<>`]{10,4000})"#),
    around("session-cookie", &["phpsessid", "jsessionid", "connect.sid", "asp.net_sessionid", "_gitlab_session", "laravel_session", "user_session", "sessionkey="], Gate::Mixed, r"(?i:phpsessid|jsessionid|connect\.sid|asp\.net_sessionid|_gitlab_session|laravel_session|user_session|sessionkey)=([A-Za-z0-9%._~+/-]{16,1000})"),
    around("netrc-password", &["machine", "login"], Gate::Password, r"(?:machine\s{1,8}[^\s]{1,200}\s{1,8})?(?:login\s{1,8}[^\s]{1,200}\s{1,8})(?:account\s{1,8}[^\s]{1,200}\s{1,8})?password\s{1,8}([^\s]{4,200})"),
    around("command-line-password", &["sshpass", "mysql", "docker login", "redis-cli", "podman login"], Gate::Password, r#"(?:sshpass [^\n|;]{0,40}?-p ?|mysql(?:dump|admin)?[^\n|;"']{0,80}? -p|(?:docker|podman) login [^\n|;]{0,120}?-p |redis-cli [^\n|;]{0,80}?-a )["']?([^\s"'`]{4,120})"#),
    around("command-line-password", &[" -u ", "--user ", "\"-u\""], Gate::Password, r#"(?: -u|--user|"-u",)[ =]["']?(?-i:[A-Z0-9._@+-]{0,40}[a-z][A-Za-z0-9._@+-]{0,80}):([^\s"'`]{5,200})"#),
];

/// What a name has to say for its value to be a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Passwords may be words.
    Password,
    /// Mixed letters and digits.
    Strong,
    /// The value must look random.
    Weak,
}

/// Words in the name of a variable, field, header or flag.
pub const NAMES: &[(&str, &str, Name)] = &[
    ("password", "password", Name::Password),
    ("passwd", "password", Name::Password),
    ("passphrase", "password", Name::Password),
    ("pwd", "password", Name::Password),
    ("pass", "password", Name::Password),
    ("secret", "secret", Name::Strong),
    ("token", "token", Name::Strong),
    ("apikey", "api-key", Name::Strong),
    ("api_key", "api-key", Name::Strong),
    ("api-key", "api-key", Name::Strong),
    ("accesskey", "access-key", Name::Strong),
    ("access_key", "access-key", Name::Strong),
    ("access-key", "access-key", Name::Strong),
    ("privatekey", "private-key-value", Name::Strong),
    ("private_key", "private-key-value", Name::Strong),
    ("private-key", "private-key-value", Name::Strong),
    ("credential", "credential", Name::Strong),
    ("auth", "auth", Name::Weak),
    ("_key", "key", Name::Weak),
    ("-key", "key", Name::Weak),
    ("encryptionkey", "key", Name::Weak),
    ("signingkey", "key", Name::Weak),
    ("masterkey", "key", Name::Weak),
];

/// Kinds that are found by code, not by a row.
pub const KINDS_BY_CODE: &[&str] =
    &["private-key", "putty-private-key", "url-password", "url-token"];
