
//: if assistant
private const val RENEW_BEFORE_MS = 300000L // before a token expires
private const val ATTESTATION_MS = 60000L // for one attestation
private const val PROOF_QUIET_MS = 30000 // without a byte from the backend
private val thisMachine = listOf("localhost", "127.0.0.1", "[::1]")

private val attestationHints = mapOf(
    "invalid_key" to "Use a live project key.",
    "not_configured" to "Ask the project's owner to add this app, or a test key, on the project's AI gateway page.",
    "revoked" to "Ask the project's owner, who revoked this install.",
    "unrecognized_app" to "Install the app from Google Play.",
    "untrusted_device" to "Use a device that passes Play Integrity; emulators need a TestKey.",
    "wrong_certificate" to "Compare the app's signing certificate with the one on the project's AI gateway page.",
    "wrong_package" to "Compare the app's package with those on the project's AI gateway page.",
    "wrong_signature" to "Use the private key that belongs to the test key on the project's AI gateway page.",
    "wrong_time" to "Correct the clock of the device."
)

/** How an install proves that it is genuine: PlayIntegrity, or TestKey on emulators and in CI. */
abstract class AttestationProof internal constructor(internal val route: String) {
    internal abstract fun fields(challenge: String, nonce: String, install: String): Map<String, Any?>
}

/**
 * A classic request to Google's Play Integrity. requestToken gets the nonce of the request and returns the token. It
 * may block, and what it throws becomes attestation_unavailable. With the library com.google.android.play:integrity:
 *
 *     PlayIntegrity { nonce ->
 *         val request = IntegrityTokenRequest.builder().setNonce(nonce).build()
 *         Tasks.await(IntegrityManagerFactory.create(context).requestIntegrityToken(request)).token()
 *     }
 */
class PlayIntegrity(private val requestToken: (nonce: String) -> String) : AttestationProof("google") {
    override fun fields(challenge: String, nonce: String, install: String) = mapOf("token" to requestToken(nonce))
}

/**
 * The private key of the project's test key, in PEM, for emulators and CI. Read it from a file outside the app. release
 * has no default on purpose: an Android app passes !BuildConfig.DEBUG. Error: test_key_refused.
 */
class TestKey(pem: String, release: Boolean) : AttestationProof("development") {
    private val key: PrivateKey

    init {
        if (release || System.getenv("SERVICE_RELEASE") == "1") {
            throw attestationError("test_key_refused", "a release build does not attest with a test key",
                "Pass PlayIntegrity in release builds.")
        }
        key = try {
            read(pem)
        } catch (e: GeneralSecurityException) {
            null
        } catch (e: IllegalArgumentException) {
            null
        } ?: throw attestationError("test_key_refused", "the test key is not an EC private key in PEM",
            "Pass the text of the file that openssl ecparam -name prime256v1 -genkey -noout wrote.")
    }

    private fun read(pem: String): PrivateKey? {
        val block = Regex("-----BEGIN (EC )?PRIVATE KEY-----([^-]*)-----END").find(pem) ?: return null
        val der = Base64.getMimeDecoder().decode(block.groupValues[2])
        val pkcs8 = if (block.groupValues[1] == "") der else sequence(ecKey + tagged(4, der))
        return KeyFactory.getInstance("EC").generatePrivate(PKCS8EncodedKeySpec(pkcs8))
    }

    private fun sequence(content: ByteArray) = tagged(0x30, content)

    private fun tagged(tag: Int, content: ByteArray): ByteArray {
        val size = content.size // below 256, because the key is one of prime256v1
        val head = if (size < 128) listOf(tag, size) else listOf(tag, 0x81, size)
        return head.map { it.toByte() }.toByteArray() + content
    }

    override fun fields(challenge: String, nonce: String, install: String): Map<String, Any?> {
        val signer = Signature.getInstance("SHA256withECDSA")
        signer.initSign(key)
        signer.update("$challenge\n$install".toByteArray())
        return mapOf("signature" to Base64.getEncoder().encodeToString(signer.sign()))
    }

    private companion object {
        // Version 0 of PKCS #8 and the algorithm: an EC key on the curve prime256v1.
        val ecKey: ByteArray = Base64.getDecoder().decode("AgEAMBMGByqGSM49AgEGCCqGSM49AwEH")
    }
}

/**
 * Attests this install to a backend such as https://service.example, and keeps its token in memory only. Pass it in
 * Settings, or use token() for calls of the gateway with another client. folder is private to the app, such as
 * noBackupFilesDir of an Android context: it stores the random id of the install in the file glasses-install. Create
 * one Attestation for each app; any thread may use it. backend begins with https://, or with http:// if it is on this
 * machine or proof is a TestKey. Error: not_configured.
 */
class Attestation(
    private val backend: String, private val projectKey: String, private val folder: File,
    private val proof: AttestationProof
) {
    private class Token(val text: String, val expires: Long) // ms of now

    internal var now = { System.currentTimeMillis() }
    internal var limitMs = ATTESTATION_MS
    internal val gateway: Map<String, Any?> = mapOf("url" to "${backend.trimEnd('/')}/v1", "attestation" to this)
    private val lock = Object() // guards what follows
    private var current: Token? = null
    private var running: FutureTask<Token>? = null

    init {
        val uri = try {
            URI(backend)
        } catch (e: URISyntaxException) {
            null
        }
        val isPlain = uri?.scheme == "http" && (proof is TestKey || uri.host in thisMachine)
        if (uri?.host == null || uri.scheme != "https" && !isPlain) {
            throw attestationError("not_configured", "the backend is $backend, but tokens are sent only by https",
                "Pass the address of the backend, such as https://service.example.")
        }
    }

    /**
     * Returns the token that replaces the project key as bearer. It attests first if there is no token or it expires
     * within 5 minutes, and blocks meanwhile. After the gateway has answered 401 invalid_key to a token, pass that as
     * refused, once, to get another one. Errors, with fixHint: attestation_failed, whose reason says why,
     * attestation_unavailable, attestation_timeout, gateway_unreachable, no_storage, and the gateway's codes.
     */
    fun token(refused: String? = null): String {
        val known: Token?
        val task: FutureTask<Token>
        synchronized(lock) {
            known = current?.takeIf { it.text != refused && now() < it.expires }
            if (known != null && now() < known.expires - RENEW_BEFORE_MS) return known.text
            task = running ?: begin()
        }
        try {
            return task.get(limitMs, TimeUnit.MILLISECONDS).text
        } catch (e: ExecutionException) {
            val cause = e.cause as? GlassesError
                ?: assistantError("bad_answer", "the backend's answer is invalid (${e.cause?.javaClass?.simpleName})")
            if (known == null || cause.code == "attestation_failed") throw cause
            return known.text // it is still valid, and the next call tries again
        } catch (e: TimeoutException) {
            if (known != null && now() < known.expires) return known.text // the attestation goes on
            throw attestationError("attestation_timeout", "the attestation took over ${ATTESTATION_MS / 1000} s",
                "Try again.")
        }
    }

    /** Starts the attestation that all callers share; the lock is held. */
    private fun begin(): FutureTask<Token> {
        lateinit var task: FutureTask<Token>
        task = FutureTask(Callable {
            try {
                attest()
            } finally { // before its result is there
                synchronized(lock) { if (running === task) running = null }
            }
        })
        running = task
        val thread = Thread(task, "glasses-attestation")
        thread.isDaemon = true
        thread.start()
        return task
    }

    private fun attest(): Token {
        val install = try {
            storedSecret(File(folder, "glasses-install"))
        } catch (e: IOException) {
            throw attestationError("no_storage", "the install's id cannot be stored: ${e.message}",
                "Pass Attestation a folder in which the app can write.")
        }
        val (_, given) = post("challenge", emptyMap())
        val challenge = given["challenge"].toString()
        val fields = try {
            proof.fields(challenge, given["nonce"].toString(), install)
        } catch (e: Exception) {
            throw attestationError("attestation_unavailable", "this device could not attest: $e",
                "Try again; a device that cannot attest has only the daily allowance of the project key.")
        }
        val began = now()
        val (date, answer) = post(proof.route, fields + mapOf("challenge" to challenge, "install" to install))
        val life = try { // by the backend's clock, because the device's may be wrong
            val from = ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant()
            Instant.parse(answer["expiresAt"].toString()).toEpochMilli() - from.toEpochMilli()
        } catch (e: DateTimeParseException) {
            throw assistantError("bad_answer", "the backend did not send when the token expires")
        }
        return Token(answer["token"].toString(), began + life).also { synchronized(lock) { current = it } }
    }

    /** Sends a request of the attestation. Returns the backend's time and its answer. */
    private fun post(route: String, fields: Map<String, Any?>): Pair<String, Map<String, Any?>> {
        val body = Json.write("the attestation", fields).toByteArray()
        val request = AssistantRequest("POST", "/attest/$route", "Content-Type: application/json\r\n", body)
        try {
            val uri = URI(gateway["url"].toString())
            return open(uri, PROOF_QUIET_MS).use {
                val response = request.send(it, uri, projectKey)
                if (response.status != 200) throw refusal(response)
                Pair(response.headers["date"] ?: "", objectOf(Json.parse(String(response.content.readBytes()))))
            }
        } catch (e: IOException) {
            throw unreachable(e)
        }
    }

    private fun refusal(response: AssistantResponse) = response.refusal().apply {
        val other = if (code != "attestation_failed") fixHint
        else "Find the reason in the documentation, page attestation."
        fixHint = attestationHints[if (reason == "") code else reason] ?: other
    }
}

private fun attestationError(code: String, message: String, hint: String) =
    GlassesError(code, message).apply { fixHint = hint }

/** The token for a gateway; refused is one that it did not accept. */
private fun tokenOf(gateway: Map<String, Any?>, refused: String? = null): String =
    (gateway["attestation"] as? Attestation)?.token(refused) ?: gateway["token"].toString()
//: end
