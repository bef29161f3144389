private class Frame(val type: String, val id: String, val at: Long, val seq: Long, val payload: Map<String, Any?>, val data: ByteArray?)

private const val MAX_FRAME = 64 shl 10 // bytes of a text frame
private const val MAX_UNACKNOWLEDGED = 1000 // frames
private const val FIRST_PAUSE_MS = 300L
private const val LONGEST_PAUSE_MS = 10000L
private const val PATIENCE_MS = 10000L // in which the first attach must succeed

private fun now(): Long = System.currentTimeMillis()

@Suppress("UNCHECKED_CAST")
private fun objectOf(value: Any?): Map<String, Any?> = value as? Map<String, Any?> ?: emptyMap()

/**
 * Keeps one session attached: reconnects with its cursor and resends unacknowledged frames. A thread reads and
 * reconnects; what it reads goes to receive, in order, on that thread.
 */
private class Link(
    private val target: Target,
    private val app: Map<String, Any?>,
    private val receive: (Frame) -> Unit,
    private val end: (GlassesError) -> Unit
) {
    @Volatile var state = "offline"
    private val lock = Object() // guards what follows, and the order of sends
    private var socket: WebSocket? = null
    private var attached = false
    private var ended: GlassesError? = null
    private val prefix = ByteArray(6).also { SecureRandom().nextBytes(it) }.joinToString("") { String.format("%02x", it) }
    private var count = 0
    private var cursor: Long? = null
    private var at = 0L // the session's time of the newest frame
    private var isVirtual = false // whether its clock is virtual, and stands still while the app is away
    private val unacknowledged = LinkedHashMap<String, String>()
    private var attempt = 0
    private val thread = Thread({ run() }, "glasses-link")

    init {
        thread.isDaemon = true
        thread.start()
    }

    /** Assigns an id to the frame, keeps the frame until it is acknowledged, and returns the id; ready gets the id
     * first. */
    fun send(type: String, payload: Map<String, Any?>, ready: (String) -> Unit): String = synchronized(lock) {
        ended?.let { throw it }
        val id = nextId()
        val text = encode(type, id, payload)
        if (text.toByteArray().size > MAX_FRAME) throw GlassesError("bad_payload", "$type would be longer than 64 KB")
        if (unacknowledged.size >= MAX_UNACKNOWLEDGED) throw GlassesError("busy", "too many frames wait for the service")
        ready(id)
        unacknowledged[id] = text
        if (attached) write(text)
        id
    }

    //: if assistant
    /** Sends a binary frame, which is not repeated if the connection is lost. */
    fun sendBytes(type: String, payload: Map<String, Any?>, data: ByteArray) = synchronized(lock) {
        val header = encode(type, nextId(), payload).toByteArray()
        val length = byteArrayOf((header.size shr 8).toByte(), header.size.toByte())
        try {
            if (attached) socket?.send(length + header + data)
        } catch (e: IOException) {
            // the reader notices
        }
    }

    //: end
    /** Answers a barrier of the service. calls is the number of calls to the AI gateway in progress. */
    fun passed(id: String, calls: Int) = synchronized(lock) {
        if (attached) write(encode("barrier", id, mapOf("calls" to calls)))
    }

    fun close(why: GlassesError) {
        val open = synchronized(lock) {
            if (ended != null) return
            ended = why
            attached = false
            state = "closed"
            lock.notifyAll()
            socket
        }
        open?.close()
        end(why)
        if (Thread.currentThread() !== thread) thread.join(5000)
    }

    private fun nextId(): String = "$prefix-${++count}"

    private fun encode(type: String, id: String, payload: Map<String, Any?>): String =
        Json.write(type, linkedMapOf("v" to 1, "type" to type, "id" to id, "at" to now(), "payload" to payload))

    private fun write(text: String) {
        try {
            socket?.send(text)
        } catch (e: IOException) {
            // the reader notices, and unacknowledged frames are resent
        }
    }

    private fun isEnded(): Boolean = synchronized(lock) { ended != null }

    private fun run() {
        val began = now()
        while (!isEnded()) {
            var code = 1006
            var reason = ""
            try {
                val closed = serve()
                code = closed.closeCode
                reason = closed.closeReason
            } catch (e: IOException) {
                // nobody listens, or the connection broke: try again
            }
            lost(code, reason)
            if (cursor == null && now() - began > PATIENCE_MS) close(GlassesError("not_connected", "no session answers at the endpoint"))
            synchronized(lock) {
                if (ended == null) lock.wait(minOf(FIRST_PAUSE_MS shl attempt, LONGEST_PAUSE_MS))
                attempt = minOf(attempt + 1, 10)
            }
        }
    }

    private fun serve(): WebSocket {
        val ws = WebSocket(target.uri)
        try {
            synchronized(lock) {
                if (ended != null) return ws
                socket = ws
                val hello = linkedMapOf<String, Any?>(
                    "secret" to target.secret, "app" to app, "barrier" to true, "gateway" to true
                )
                if (cursor != null) hello["since"] = cursor
                ws.send(encode("hello", nextId(), hello))
            }
            while (true) frameOf(ws.receive() ?: return ws)?.let { take(it) }
        } finally {
            ws.drop()
        }
    }

    private fun lost(code: Int, reason: String) {
        val was = attached
        val refused = synchronized(lock) {
            attached = false
            if (ended != null) return
            state = "offline"
            if (code == 1009) unacknowledged.keys.toList() else emptyList()
        }
        if (was) receive(Frame("connection", "", sessionNow(), 0, mapOf("state" to "offline"), null))
        when (code) {
            4400, 4401 -> close(GlassesError("refused", reason.ifEmpty { "the service refused the app" }))
            4410 -> close(GlassesError("closed", reason.ifEmpty { "the session is closed" }))
        }
        for (id in refused) refuse(id, mapOf("code" to "bad_frame", "message" to "the frame was too big for the service"))
    }

    /** null if it is not a frame: a newer service may send what this module does not know. */
    private fun frameOf(message: Any): Frame? {
        try {
            var text = message as? String ?: ""
            var data: ByteArray? = null
            if (message is ByteArray) {
                if (message.size < 2) return null
                val end = 2 + ((message[0].toInt() and 255 shl 8) or (message[1].toInt() and 255))
                if (end > message.size) return null
                text = String(message, 2, end - 2)
                data = message.copyOfRange(end, message.size)
            }
            val f = objectOf(Json.parse(text))
            return Frame(f["type"] as? String ?: return null, f["id"] as? String ?: "", number(f["at"]), number(f["seq"]), objectOf(f["payload"]), data)
        } catch (e: IOException) {
            return null
        }
    }

    private fun number(value: Any?): Long = (value as? Number)?.toLong() ?: 0L

    private fun take(frame: Frame) {
        synchronized(lock) {
            at = maxOf(at, frame.at)
            if (frame.seq > 0) see(frame.seq)
            when (frame.type) {
                "welcome" -> {
                    state = frame.payload["link"] as? String ?: "connected"
                    attempt = 0
                    isVirtual = objectOf(frame.payload["glasses"])["clock"] == "virtual"
                    if (cursor == null) cursor = number(frame.payload["lastSeq"])
                    attached = true
                    for (text in unacknowledged.values) write(text)
                }
                "ack" -> {
                    unacknowledged.remove(frame.payload["id"])
                    return
                }
                "cursor" -> return see(number(frame.payload["seq"]))
                "link" -> state = frame.payload["state"] as? String ?: state
            }
        }
        if (frame.type == "error") refuse(frame.id, frame.payload) else receive(frame)
    }

    private fun refuse(id: String, error: Map<String, Any?>) {
        val known = synchronized(lock) { unacknowledged.remove(id) }
        if (known != null) receive(Frame("result", id, sessionNow(), 0, mapOf("error" to error), null))
    }

    private fun sessionNow(): Long = synchronized(lock) { if (isVirtual) at else now() }

    private fun see(seq: Long) {
        val seen = cursor
        if (seen != null && seq > seen) cursor = seq
    }
}

