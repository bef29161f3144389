private const val MAX_MESSAGE = 4 shl 20 // bytes
private const val HANDSHAKE_MS = 10000
private const val QUIET_MS = 30000 // the service pings every 8 seconds

private fun isSecure(uri: URI): Boolean = uri.scheme == "wss" || uri.scheme == "https"

private fun portOf(uri: URI): Int = if (uri.port > 0) uri.port else if (isSecure(uri)) 443 else 80

/** Connects to an endpoint, by TLS if it asks for that. A read that takes longer than quietMs fails. */
private fun open(uri: URI, quietMs: Int): Socket {
    val plain = Socket()
    try {
        plain.connect(InetSocketAddress(uri.host.trim('[', ']'), portOf(uri)), 10000)
        plain.tcpNoDelay = true
        return (if (isSecure(uri)) secured(plain, uri.host, portOf(uri)) else plain).apply { soTimeout = quietMs }
    } catch (e: Exception) {
        plain.close()
        throw e
    }
}

private fun secured(plain: Socket, host: String, port: Int): Socket {
    val socket = (SSLSocketFactory.getDefault() as SSLSocketFactory).createSocket(plain, host, port, true) as SSLSocket
    val parameters: SSLParameters = socket.sslParameters
    parameters.endpointIdentificationAlgorithm = "HTTPS" // the certificate must be this host's
    socket.sslParameters = parameters
    socket.startHandshake()
    return socket
}

/** A line of an HTTP header. */
private fun line(input: DataInputStream): String {
    val out = StringBuilder()
    while (out.length < 8192) {
        val c = input.readUnsignedByte()
        if (c == 10) return out.toString().trim()
        out.append(c.toChar())
    }
    throw IOException("the endpoint does not speak HTTP")
}

/** The endpoint answered a handshake with another status than 101. */
private class NoWebSocket(val status: String) : IOException("the endpoint does not speak WebSocket")

/**
 * A client of RFC 6455: messages of one connection. It needs only sockets, so that it runs on a JVM and on Android.
 * headers are further lines of the request, each ending in CRLF.
 */
private class WebSocket(uri: URI, headers: String = "") {
    @Volatile var closeCode = 1006
    @Volatile var closeReason = ""
    private val random = SecureRandom()
    private val socket: Socket
    private val input: DataInputStream
    private val output: OutputStream

    init {
        socket = open(uri, HANDSHAKE_MS)
        try {
            input = DataInputStream(socket.getInputStream().buffered())
            output = socket.getOutputStream()
            handshake(uri, headers)
            socket.soTimeout = QUIET_MS
        } catch (e: Exception) {
            socket.close()
            throw e
        }
    }

    private fun handshake(uri: URI, headers: String) {
        val key = Base64.getEncoder().encodeToString(ByteArray(16).also { random.nextBytes(it) })
        val path = (uri.rawPath ?: "").ifEmpty { "/" } + if (uri.rawQuery != null) "?" + uri.rawQuery else ""
        output.write(("GET $path HTTP/1.1\r\nHost: ${uri.host}:${portOf(uri)}\r\n" +
            "Upgrade: websocket\r\nConnection: Upgrade\r\n" +
            "Sec-WebSocket-Key: $key\r\nSec-WebSocket-Version: 13\r\n$headers\r\n").toByteArray())
        output.flush()
        val status = line(input)
        var accepted = ""
        for (i in 0 until 100) {
            val header = line(input)
            if (header == "") break
            if (header.substringBefore(':').trim().toLowerCase() == "sec-websocket-accept") accepted = header.substringAfter(':').trim()
        }
        val digest = MessageDigest.getInstance("SHA-1").digest((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").toByteArray())
        if (status.split(' ').getOrNull(1) != "101" || accepted != Base64.getEncoder().encodeToString(digest)) {
            throw NoWebSocket(status.split(' ').getOrNull(1) ?: "")
        }
    }

    fun send(text: String) = send(1, text.toByteArray())
    //: if assistant

    fun send(data: ByteArray) = send(2, data)
    //: end

    @Synchronized
    private fun send(opcode: Int, data: ByteArray) {
        val mask = ByteArray(4).also { random.nextBytes(it) }
        val head = when {
            data.size < 126 -> byteArrayOf(data.size.toByte())
            data.size < 65536 -> byteArrayOf(126, (data.size shr 8).toByte(), data.size.toByte())
            else -> byteArrayOf(127, 0, 0, 0, 0, (data.size shr 24).toByte(), (data.size shr 16).toByte(), (data.size shr 8).toByte(), data.size.toByte())
        }
        head[0] = (head[0].toInt() or 0x80).toByte()
        val masked = ByteArray(data.size) { (data[it].toInt() xor mask[it and 3].toInt()).toByte() }
        output.write(byteArrayOf((0x80 or opcode).toByte()) + head + mask + masked)
        output.flush()
    }

    /** The next message: a String or a ByteArray; null when the peer closed. IOException when the connection broke. */
    fun receive(): Any? {
        var kind = 0
        var message = ByteArray(0)
        while (true) {
            val first = input.readUnsignedByte()
            val data = payload()
            when (first and 15) {
                8 -> return closed(data)
                9 -> answer(10, data)
                10 -> Unit
                else -> {
                    if (first and 15 != 0) kind = first and 15
                    message += data
                    if (message.size > MAX_MESSAGE) throw IOException("the service sent a message that is too long")
                    if (first and 0x80 != 0) return if (kind == 1) String(message) else message
                }
            }
        }
    }

    private fun payload(): ByteArray {
        val second = input.readUnsignedByte()
        val length = when (second) {
            126 -> input.readUnsignedShort().toLong()
            127 -> input.readLong()
            else -> second.toLong()
        }
        if (second > 127 || length < 0 || length > MAX_MESSAGE) throw IOException("the service sent a frame that is not allowed")
        return ByteArray(length.toInt()).also { input.readFully(it) }
    }

    private fun closed(data: ByteArray): Any? {
        if (data.size >= 2) {
            closeCode = (data[0].toInt() and 255 shl 8) or (data[1].toInt() and 255)
            closeReason = String(data, 2, data.size - 2)
        }
        answer(8, data.copyOf(minOf(2, data.size)))
        return null
    }

    private fun answer(opcode: Int, data: ByteArray) {
        try {
            send(opcode, data)
        } catch (e: IOException) {
            // the reader will notice
        }
    }

    fun close() {
        answer(8, byteArrayOf(3, 232.toByte())) // 1000
        drop()
    }

    fun drop() {
        try {
            socket.close()
        } catch (e: IOException) {
            // it is gone
        }
    }
}

