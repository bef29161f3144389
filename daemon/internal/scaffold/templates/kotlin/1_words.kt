package service

//: if assistant
import java.io.ByteArrayOutputStream
//: end
import java.io.Closeable
import java.io.DataInputStream
//: if assistant
import java.io.File
//: end
import java.io.IOException
//: if assistant
import java.io.InputStream
//: end
import java.io.OutputStream
import java.net.InetSocketAddress
import java.net.Socket
//: if assistant
import java.net.SocketTimeoutException
//: end
import java.net.URI
//: if assistant
import java.net.URISyntaxException
//: end
//: if assistant
import java.nio.file.Files
import java.nio.file.StandardCopyOption
import java.nio.file.attribute.PosixFilePermissions
import java.security.GeneralSecurityException
import java.security.KeyFactory
//: end
import java.security.MessageDigest
//: if assistant
import java.security.PrivateKey
//: end
import java.security.SecureRandom
//: if assistant
import java.security.Signature
import java.security.spec.PKCS8EncodedKeySpec
import java.time.Instant
import java.time.ZonedDateTime
import java.time.format.DateTimeFormatter
import java.time.format.DateTimeParseException
//: end
import java.util.ArrayDeque
import java.util.Base64
//: if assistant
import java.util.concurrent.Callable
import java.util.concurrent.ExecutionException
import java.util.concurrent.FutureTask
//: end
import java.util.concurrent.LinkedBlockingQueue
//: if assistant
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
//: end
import javax.net.ssl.SSLParameters
import javax.net.ssl.SSLSocket
import javax.net.ssl.SSLSocketFactory

/**
 * Every refusal. Branch on code; the message is for people. Codes of the glasses: bad_payload, unsupported,
 * not_connected, hinge_closed, thermal_critical, paused, permission_denied, disabled_by_user, busy, timeout and
 * platform_error; of the service: bad_frame and id_reused; of this module: not_configured, simulator_refused,
 * transport_unavailable, refused, closed and media_lost. There may be new codes. With permission_denied and
 * disabled_by_user part is camera, microphone or speech, and by permission or switch.
 */
class GlassesError(val code: String, message: String, val part: String = "", val by: String = "") : Exception(message) {
    //: if assistant
    /** Of ask: what to do next. */
    var fixHint = ""
        internal set
    /** Of ask: when to ask again; 0 if waiting does not help. */
    var retryAfterMs = 0L
        internal set
    /** With attestation_failed: why, such as revoked. */
    var reason = ""
        internal set
    //: end
}

/** An event from the glasses. data is set for frames of a stream. */
class Event(val type: String, val id: String, val at: Long, val payload: Map<String, Any?>, val data: ByteArray?)

//: if camera
/** A photo or a clip. */
class Media(val data: ByteArray, described: Map<String, Any?>) {
    val mime = described["mime"] as? String ?: ""
    val sha256 = described["sha256"] as? String ?: ""
    val width = (described["width"] as? Number)?.toInt() ?: 0
    val height = (described["height"] as? Number)?.toInt() ?: 0
    val durationMs = (described["durationMs"] as? Number)?.toLong() ?: 0L
}

//: end
/**
 * How to reach the glasses. release has no default on purpose: an Android app passes !BuildConfig.DEBUG. transport is
 * the one setting, SERVICE_GLASSES_TRANSPORT: simulator or device; by default simulator in a development build and
 * device in a release build. url and secret come from SERVICE_GLASSES_URL and the file SERVICE_GLASSES_SECRET_FILE, or,
 * on a phone, from the developer's own debug settings.
 //: if assistant
 *
 * user is the secret of the user whom remember, memory and forget are about: 32 random lower-case hexadecimal digits,
 * such as one for each person who signs in. By default the module makes one and stores it on this computer. An Android
 * app makes and stores its own.
 *
 * attestation authorises ask, converse, memory and forget if the session has no AI gateway of its own.
 //: end
 */
class Settings(
    val name: String,
    val version: String,
    val release: Boolean,
    val transport: String? = null,
    val url: String? = null,
    val secret: String? = null
    //: if assistant
    , val user: String? = null, val attestation: Attestation? = null
    //: end
)

private class Target(val uri: URI, val secret: String)

/** Decides where to attach: never to a simulator in a release build, and only by the transport that was set. */
private fun target(s: Settings): Target {
    val release = s.release || System.getenv("SERVICE_RELEASE") == "1"
    val transport = s.transport ?: System.getenv("SERVICE_GLASSES_TRANSPORT") ?: if (release) "device" else "simulator"
    if (transport == "device") {
        throw GlassesError("transport_unavailable", "this version of the module has no transport to real glasses; " +
            "set SERVICE_GLASSES_TRANSPORT=simulator while developing")
    }
    if (transport != "simulator") {
        throw GlassesError("not_configured", "SERVICE_GLASSES_TRANSPORT is $transport, want simulator or device")
    }
    if (release) throw GlassesError("simulator_refused", "a release build does not attach to a simulator")
    val url = s.url ?: System.getenv("SERVICE_GLASSES_URL") ?: ""
    if (!url.startsWith("ws://") && !url.startsWith("wss://")) {
        throw GlassesError("not_configured", "SERVICE_GLASSES_URL is not the ws:// endpoint of a session; " +
            "startLocalSimulation and createSimulatorSession return one")
    }
    return Target(URI(url), s.secret ?: secretOf())
}

private fun secretOf(): String {
    val path = System.getenv("SERVICE_GLASSES_SECRET_FILE")
        ?: throw GlassesError("not_configured", "SERVICE_GLASSES_SECRET_FILE does not name the file with the session's secret")
    try {
        return java.io.File(path).readText().trim()
    } catch (e: IOException) {
        throw GlassesError("not_configured", "reading the session's secret: ${e.message}")
    }
}

