
//: if assistant
private const val MAX_ROUNDS = 8 // answers of the model to one question
private const val MAX_ANSWER = 1 shl 20 // bytes of an answer
private const val MAX_CALLS = 64 // tool calls in one answer
private const val ASSISTANT_QUIET_MS = 120000 // without a byte from the gateway

private val fixHints = mapOf(
    "no_gateway" to "Start a session with assistantScript, or use createSimulatorSession in a project with models.",
    "no_credit" to "Ask the account's owner to add credit on the credit page; an assistantScript costs nothing.",
    "cap_reached" to "Ask the owner to raise the cap on the project's gateway page, or wait until it resets.",
    "credit_reserved" to "Ask again when the calls that have reserved the credit have ended.",
    "credit_locked" to "Ask the account's owner to confirm their email address.",
    "request_too_large" to "Send fewer or shorter messages.",
    "invalid_key" to "Attach to a session that is still open; with an attestation, use a live project key.",
    "attestation_required" to
        "Pass Settings an attestation, ask the owner for a higher allowance, or wait until it resets.",
    "model_not_found" to "Choose a textModel with setAssistantConfig.",
    "not_configured" to "Ask the backend's operator to set up a provider; until then use an assistantScript.",
    "no_storage" to "Make the user's data directory writable, or pass Settings a user that the app stores itself.",
    "cancelled" to "Ask again when the wearer wants an answer.",
    "too_many_rounds" to "Make the tools' results say clearly that they are complete.",
    "bad_answer" to "Ask again; if that does not help, choose another textModel."
)

private fun assistantError(code: String, message: String, status: Int = 0, wait: String = ""): GlassesError {
    val waitingHelps = status == 0 || status == 408 || status == 429 || status >= 500
    return GlassesError(code, message).apply {
        fixHint = fixHints[code] ?: if (waitingHelps) "Ask again." else "Change the request as the message explains."
        if (Regex("[0-9]{1,6}").matches(wait)) retryAfterMs = wait.toLong() * 1000
    }
}

/**
 * A function that the model may call. parameters is the JSON Schema of its arguments, an object; run gets the arguments
 * and returns the result for the model: a text, or a value that JSON can represent.
 */
class AssistantTool(
    val name: String,
    val description: String,
    val parameters: Map<String, Any?> = mapOf("type" to "object", "properties" to emptyMap<String, Any?>()),
    val run: (Map<String, Any?>) -> Any?
) {
    internal fun described(): Map<String, Any?> {
        val function = mapOf("name" to name, "description" to description, "parameters" to parameters)
        return mapOf("type" to "function", "function" to function)
    }
}

/**
 * The model's answer. To continue, pass messages + mapOf("role" to "user", "content" to "..."). messages does not
 * include the system text.
 */
class AssistantAnswer(val text: String, val messages: List<Map<String, Any?>>)

/** A request to the AI gateway. Each of its headers ends in CRLF. */
private class AssistantRequest(val method: String, val path: String, val headers: String, val body: ByteArray?) {
    /** Sends it and reads the answer up to its content. */
    fun send(to: Socket, uri: URI, token: String): AssistantResponse {
        val output = to.getOutputStream()
        val content = body ?: ByteArray(0)
        output.write(("$method ${uri.rawPath}$path HTTP/1.1\r\n" +
            "Host: ${uri.host}:${portOf(uri)}\r\nAuthorization: Bearer $token\r\n$headers" +
            "Content-Length: ${content.size}\r\nConnection: close\r\n\r\n").toByteArray() + content)
        output.flush()
        return AssistantResponse(DataInputStream(to.getInputStream().buffered()))
    }
}

private class AssistantResponse(input: DataInputStream) {
    val status = line(input).split(' ').getOrNull(1)?.toIntOrNull() ?: throw IOException("no HTTP")
    val headers = HashMap<String, String>()
    val content: AssistantBody

    init {
        for (i in 0 until 100) {
            val header = line(input)
            if (header == "") break
            headers[header.substringBefore(':').trim().toLowerCase()] = header.substringAfter(':').trim()
        }
        val chunked = headers["transfer-encoding"]?.toLowerCase() == "chunked"
        content = AssistantBody(input, chunked, if (chunked) 0 else headers["content-length"]?.toLongOrNull() ?: -1)
    }

    fun refusal(): GlassesError {
        val error = try {
            objectOf(objectOf(Json.parse(String(content.readBytes())))["error"])
        } catch (e: IOException) {
            emptyMap<String, Any?>()
        }
        val code = error["code"] as? String ?: "gateway_error"
        val message = error["message"] as? String ?: "the AI gateway answered with status $status"
        return assistantError(code, message, status, headers["retry-after"] ?: "").apply {
            reason = error["reason"] as? String ?: ""
        }
    }
}

private fun unreachable(e: IOException) =
    assistantError("gateway_unreachable", "the AI gateway cannot be reached (${e.javaClass.simpleName})")

/** Headers of a request that remembers this user. */
private fun remembering(user: String) = "X-Service-User: $user\r\nX-Service-Memory: wearer-agreed\r\n"

/**
 * One request to the AI gateway. A thread sends it and reads the answer, and the app's thread takes its parts: the text
 * so far, and last the whole message or a GlassesError.
 */
private class AssistantCall(
    private val gateway: Map<String, Any?>,
    private val request: AssistantRequest,
    private val quietMs: Int, // 0: for ever
    private var ended: () -> Unit,
    private val put: (AssistantCall, Any) -> Unit
) : Closeable {
    val parts = ArrayDeque<Any>()
    private val text = StringBuilder()
    private val toolCalls = ArrayList<ToolCall>()
    private var finished = false
    private val lock = Object() // guards what follows
    private var socket: Socket? = null
    private var closed = false
    private val thread = Thread({ run() }, "glasses-assistant")

    private class ToolCall(var id: String = "", var name: String = "", val arguments: StringBuilder = StringBuilder())

    init {
        thread.isDaemon = true
        thread.start()
    }

    /** Keeps a part for ask. The last one ends the call. */
    fun take(part: Any?) {
        if (part !is String) end()
        parts.add(part)
    }

    private fun end() {
        ended()
        ended = {}
    }

    override fun close() {
        end()
        val open = synchronized(lock) {
            closed = true
            socket
        }
        open?.close()
        thread.interrupt() // it may wait for an attestation
        thread.join(5000)
    }

    /** Texts of errors may quote the request with the token, so only their kinds are reported. */
    private fun run() {
        val last: Any = try {
            exchange()
        } catch (e: GlassesError) {
            e
        } catch (e: SocketTimeoutException) {
            if (socket == null) unreachable(e)
            else assistantError("gateway_timeout", "the AI gateway sent nothing for ${ASSISTANT_QUIET_MS / 1000} s")
        } catch (e: IOException) {
            if (socket == null) unreachable(e)
            else assistantError("answer_broken", "the answer broke off (${e.javaClass.simpleName})")
        } catch (e: InterruptedException) {
            assistantError("cancelled", "the app stopped asking")
        } catch (e: RuntimeException) {
            assistantError("bad_answer", "the AI gateway sent an invalid answer (${e.javaClass.simpleName})")
        }
        put(this, last)
    }

    private fun exchange(): Map<String, Any?> {
        val token = tokenOf(gateway)
        try {
            return exchange(token)
        } catch (e: GlassesError) {
            if (e.code != "invalid_key" || "attestation" !in gateway) throw e
        }
        return exchange(tokenOf(gateway, token))
    }

    private fun exchange(token: String): Map<String, Any?> {
        val uri = URI(gateway["url"].toString())
        val open = open(uri, quietMs)
        try {
            synchronized(lock) {
                if (closed) throw IOException("closed")
                socket = open
            }
            val response = request.send(open, uri, token)
            if (response.status == 204) return emptyMap()
            if (response.status != 200) throw response.refusal()
            return if (request.body == null) parse(String(response.content.readBytes())) else read(response.content)
        } finally {
            open.close()
        }
    }

    private fun read(content: AssistantBody): Map<String, Any?> {
        while (true) {
            val line = content.line()
            if (line == null && !finished) throw assistantError("answer_broken", "the answer broke off")
            if (line != null && !line.startsWith("data:")) continue
            val data = line?.substring(5)?.trim() ?: "[DONE]"
            if (data == "[DONE]") break
            chunk(parse(data))
        }
        val message = linkedMapOf<String, Any?>("role" to "assistant", "content" to text.toString())
        if (toolCalls.isNotEmpty()) {
            message["tool_calls"] = toolCalls.map {
                val function = mapOf("name" to it.name, "arguments" to it.arguments.toString())
                mapOf("id" to it.id, "type" to "function", "function" to function)
            }
        }
        return message
    }

    private fun parse(data: String): Map<String, Any?> = try {
        objectOf(Json.parse(data))
    } catch (e: IOException) {
        throw assistantError("bad_answer", "the AI gateway sent an invalid answer")
    }

    private fun chunk(chunk: Map<String, Any?>) {
        val error = objectOf(chunk["error"])
        if (error.isNotEmpty()) {
            val message = error["message"] as? String ?: "the answer broke off"
            throw assistantError(error["code"] as? String ?: "provider_error", message)
        }
        val choice = objectOf((chunk["choices"] as? List<*>)?.firstOrNull())
        if (choice["finish_reason"] != null) finished = true
        val delta = objectOf(choice["delta"])
        for (part in delta["tool_calls"] as? List<*> ?: emptyList<Any?>()) toolCall(objectOf(part))
        val more = delta["content"] as? String ?: ""
        if (more == "") return
        text.append(more)
        put(this, text.toString())
    }

    private fun toolCall(part: Map<String, Any?>) {
        val index = (part["index"] as? Number)?.toInt() ?: toolCalls.size
        if (index == toolCalls.size && index < MAX_CALLS) toolCalls.add(ToolCall())
        val call = toolCalls[index]
        if (call.id == "") call.id = part["id"] as? String ?: ""
        val function = objectOf(part["function"])
        call.name += function["name"] as? String ?: ""
        call.arguments.append(function["arguments"] as? String ?: "")
    }
}

/** The body of an HTTP answer. left are the bytes of its chunk, or of all; less than 0: it ends with the connection. */
private class AssistantBody(
    private val input: DataInputStream, private val chunked: Boolean, private var left: Long
) : InputStream() {
    private var lastChunk = false
    private var total = 0

    override fun read(): Int {
        if (chunked && left == 0L && !lastChunk) {
            val size = line(input).ifEmpty { line(input) } // the line before it ends the last chunk
            left = size.substringBefore(';').trim().toLongOrNull(16) ?: throw IOException("no chunk")
            lastChunk = left == 0L
        }
        if (left == 0L) return -1
        val byte = input.read()
        if (byte < 0 && left > 0) throw IOException("the answer broke off")
        if (left > 0) left--
        if (++total > MAX_ANSWER) throw assistantError("bad_answer", "the answer is over 1 MB")
        return byte
    }

    /** The next line; null at the end. */
    fun line(): String? {
        val out = ByteArrayOutputStream()
        while (true) {
            val byte = read()
            if (byte == 10 || byte < 0 && out.size() > 0) return String(out.toByteArray())
            if (byte < 0) return null
            out.write(byte)
        }
    }
}
//: end
