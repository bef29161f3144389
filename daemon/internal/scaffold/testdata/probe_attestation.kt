// The part of the probe that attests, to the backend PROBE_BACKEND, with a clock that the test holds.
import service.Attestation
import service.Glasses
import service.PlayIntegrity
import service.TestKey
import java.io.File
import java.util.TreeSet
import java.util.concurrent.Callable
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors

private var clock = 1000L // ms
private val hang = CountDownLatch(1)
@Volatile private var hangs = false

fun attestation(): Attestation? {
    val backend = System.getenv("PROBE_BACKEND") ?: return null
    val testKey = System.getenv("PROBE_TEST_KEY")
    val proof = if (testKey != null) TestKey(File(testKey).readText(), false) else PlayIntegrity { nonce ->
        if (File("fails").exists()) throw IllegalStateException("NETWORK_ERROR")
        if (hangs) hang.await()
        "play:$nonce"
    }
    return Attestation(backend, System.getenv("PROBE_KEY"), File("private"), proof).apply { now = { clock } }
}

/**
 * Obeys "token", "token REFUSED", "tokens" (eight threads want one), "later MS", "hang" (Play Integrity does not
 * answer, and nobody waits for it) and "answer". Reports whether it did.
 */
fun attest(glasses: Glasses, attestation: Attestation?, target: String): Boolean {
    val (command, more) = Pair(target.substringBefore(' '), target.substringAfter(' ', ""))
    if (attestation == null) return false
    when (command) {
        "token" -> {
            val text = attestation.token(if (more == "") null else more)
            glasses.log("com.example.token", mapOf("text" to text))
        }
        "tokens" -> {
            val pool = Executors.newFixedThreadPool(8)
            val all = pool.invokeAll(List(8) { Callable { attestation.token() } }).map { it.get() }
            pool.shutdown()
            glasses.log("com.example.token", mapOf("text" to TreeSet(all).joinToString()))
        }
        "later" -> {
            clock += more.toLong()
            glasses.log("com.example.later", emptyMap())
        }
        "hang" -> {
            hangs = true
            attestation.limitMs = 0
            glasses.log("com.example.hang", emptyMap())
        }
        "answer" -> {
            attestation.limitMs = 60000
            hang.countDown()
            glasses.log("com.example.answer", emptyMap())
        }
        else -> return false
    }
    return true
}
