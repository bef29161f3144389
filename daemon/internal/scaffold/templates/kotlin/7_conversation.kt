
//: if assistant
private const val VOICE_RATE = 16000 // samples a second
private const val CHUNK = VOICE_RATE / 10 * 2 // bytes of 100 ms
// At most 30 s are sent ahead of what was played: ahead is too low by up to one period if the sound had a gap.
private const val MAX_AHEAD_MS = 25000L
private const val PACING_PERIOD_MS = 5000L
private const val REOPEN_AFTER_MS = 1000L // until a lost conversation is opened again
private const val MAX_ATTEMPTS = 30 // to open it without success
private const val MAY_FAIL = "may_fail" // the id of events that may fail, because the answer may have ended

/** The reasons of close codes that another attempt would not change. */
private val finalReasons = mapOf(
    4400 to "refused", 4401 to "closed", 4402 to "no_credit", 4408 to "session_limit", 4410 to "closed"
)

/**
 * How a conversation ended. reason is stopped, or the code of what ended it: no_credit, session_limit, ...; mode is
 * realtime, or text if the session has no realtime model or the conversation ended before that was known.
 */
class ConversationEnd(val reason: String, val mode: String)

/** Refusals of an attestation that another attempt would not change. */
private val finalRefusals = listOf("attestation_failed", "invalid_key", "no_storage")

/** What a Conversation needs of Glasses. */
private interface ConversationHost {
    val glasses: Glasses
    val gateway: Map<String, Any?>
    val ended: GlassesError?

    fun until(there: () -> Boolean)

    /** Passes an event to take, on the app's thread. Any thread may call it. */
    fun put(conversation: Conversation, event: Map<String, Any?>)

    /** Sends a command without waiting for its result, and returns its id. refused gets the code of a refusal. */
    fun start(type: String, payload: Map<String, Any?>, refused: (String) -> Unit): String

    fun sendBytes(type: String, payload: Map<String, Any?>, data: ByteArray)

    fun answer(barrier: String)

    /** Runs the tool of a call. Returns a message with its result as content. */
    fun use(call: Map<String, Any?>, tools: List<AssistantTool>): Map<String, Any?>
}

/** An answer that is being spoken, or waits for the one before it. */
private class Utterance(var item: String) {
    var playback = "" // the id of its playback.start
    val waiting = ArrayDeque<ByteArray>() // sound that was not sent yet
    var ahead = 0L // ms that were sent and may not have been played
    var stopPacing = {}
    var complete = false
    var ended = false // playback.end was sent
}

/** One call of converse. A thread reads the gateway's events; the app's thread handles them and everything else. */
private class Conversation(
    private val host: ConversationHost,
    private val instructions: String,
    private val tools: List<AssistantTool>,
    private val user: String, // to remember, or ""
    private val onHeard: (String) -> Unit,
    private val onSaid: (String) -> Unit,
    private val onError: (GlassesError) -> Unit
) {
    var isAnswering = false // whether the gateway owes an answer
        private set
    private var isBehind = false // whether the gateway was sent something that it may not have reacted to
    private val glasses = host.glasses
    private val events = ArrayDeque<Map<String, Any?>>()
    private var socket: WebSocket? = null
    private val spoken = ArrayDeque<Utterance>()
    private val silenced = HashSet<String>() // items whose further sound is dropped
    private val calls = ArrayList<Map<String, Any?>>() // of the response in progress
    private var said = ""
    private val barriers = ArrayList<String>() // to answer once the gateway has caught up
    private val updates = ArrayDeque<() -> Unit>() // what to do when it answers each session.update
    private var mode = ""
    private var reason = ""
    private var transcripts = 0
    private var messages: List<Map<String, Any?>> = emptyList() // in the mode text
    private var attempts = 0
    @Volatile private var refusedToken: String? = null // of an attestation, by the gateway
    private var isHandling = false // an event, perhaps in the app's own code
    private val lock = Object() // guards what follows
    private var reading: WebSocket? = null
    private var closed = false

    fun run(): ConversationEnd {
        val offs = ArrayList<() -> Unit>()
        try {
            mode = findMode()
            if (reason == "") begin(mode, offs)
            while (reason == "") {
                host.until { events.isNotEmpty() || reason != "" }
                if (reason == "") handle(events.remove())
            }
            leave(mode)
        } catch (e: Exception) { // perhaps of a tool or a handler
            if (e === host.ended) return if (host.ended?.code == "closed") ended("closed") else throw e
            leave(mode)
            throw e
        } finally {
            spoken.peek()?.stopPacing?.invoke()
            offs.forEach { it() }
            close()
        }
        return ended(reason)
    }

    private fun ended(why: String) = ConversationEnd(why, mode.ifEmpty { "text" })

    private fun begin(mode: String, offs: MutableList<() -> Unit>) {
        val listen: (Event) -> Unit
        if (mode == "realtime") {
            listen = { attempt("audio.start", mapOf("sampleRate" to VOICE_RATE)) }
            offs.add(glasses.on("audio.chunk") { hear(it) })
            offs.add(glasses.on("playback") { played(it.payload) })
            offs.add(glasses.on("link") { lose(it.payload) })
            open()
        } else {
            listen = { attempt("transcription.start") }
            offs.add(glasses.on("transcript") { interruptText(it.payload) })
        }
        for (type in listOf("hinge", "call", "link", "permission", "disabled", "device", "connection")) {
            offs.add(glasses.on(type, listen))
        }
        listen(Event("", "", 0, emptyMap(), null))
    }

    /** Stops listening and the sound of an answer. */
    private fun leave(mode: String) {
        if (mode == "") return // nothing has begun
        attempt(if (mode == "realtime") "audio.stop" else "transcription.stop")
        val first = spoken.peek() ?: return
        first.stopPacing()
        if (first.playback != "") attempt("playback.flush")
    }

    private fun close() {
        val open = synchronized(lock) {
            closed = true
            lock.notifyAll()
            reading
        }
        open?.close()
    }

    fun end(why: String) {
        if (reason == "") reason = why
        forget()
        if (mode == "text") glasses.stopAsking()
    }

    fun take(event: Map<String, Any?>) {
        events.add(event)
    }

    /** Answers a barrier later if the gateway may still react to what it was sent; reports whether that is so. */
    fun catchUp(barrier: String): Boolean {
        if (!isBehind || socket == null || isHandling) return false // a tool may itself wait for the session's clock
        barriers.add(barrier)
        update(emptyMap()) { answerBarriers() }
        isBehind = false
        return true
    }

    /** Answers the deferred barriers if the app's own code, such as a tool, now waits for the glasses. */
    fun waits() {
        if (isHandling && barriers.isNotEmpty()) answerBarriers()
    }

    private fun answerBarriers() {
        val all = barriers.toList()
        barriers.clear()
        all.forEach { host.answer(it) }
    }

    private fun attempt(type: String, payload: Map<String, Any?> = emptyMap()): Map<String, Any?> = try {
        glasses.command(type, payload).result
    } catch (e: GlassesError) {
        if (e === host.ended) throw e
        emptyMap() // a later state may allow it
    }

    /** Asks the gateway for the mode, on a thread that may wait for an attestation. "" if the app stops meanwhile. */
    private fun findMode(): String {
        val gateway = host.gateway
        if (gateway.isEmpty()) throw assistantError("no_gateway", "this session has no AI gateway")
        isAnswering = true // virtual time waits
        val thread = Thread({
            val found = try {
                if (hasRealtime(gateway)) "realtime" else "text"
            } catch (e: Exception) {
                e
            }
            host.put(this, mapOf("mode" to found))
        }, "glasses-conversation")
        thread.isDaemon = true
        thread.start()
        host.until { events.isNotEmpty() || reason != "" }
        isAnswering = false
        if (reason != "") return ""
        val found = events.remove()["mode"]
        if (found is Exception) throw found
        return found.toString()
    }

    private fun hasRealtime(gateway: Map<String, Any?>): Boolean {
        val token = tokenOf(gateway)
        var status = realtimeStatus(gateway, token)
        if (status == 401 && "attestation" in gateway) status = realtimeStatus(gateway, tokenOf(gateway, token))
        return status == 426 // it asks for a WebSocket
    }

    private fun realtimeStatus(gateway: Map<String, Any?>, token: String): Int {
        val uri = URI(gateway["url"].toString())
        try {
            return open(uri, HANDSHAKE_MS).use {
                AssistantRequest("GET", "/realtime?model=assistant", "", null).send(it, uri, token).status
            }
        } catch (e: IOException) {
            throw unreachable(e)
        }
    }

    /** Opens the conversation; why is the code of what the last attempt failed with. */
    private fun open(why: String = "gateway_unreachable") {
        val gateway = host.gateway
        if (gateway.isEmpty()) return end("no_gateway")
        if (++attempts > MAX_ATTEMPTS) return end(why)
        isAnswering = true // virtual time waits for the first session.updated
        val thread = Thread({ read(gateway) }, "glasses-conversation")
        thread.isDaemon = true
        thread.start()
    }

    /** Opens the conversation and passes its events on, until it is lost. */
    private fun read(gateway: Map<String, Any?>) {
        val address = "ws" + gateway["url"].toString().removePrefix("http")
        var code = 1006
        var why = "gateway_unreachable"
        var token = ""
        try {
            token = tokenOf(gateway, refusedToken)
            val uri = URI("$address/realtime?model=assistant&rate=$VOICE_RATE")
            val more = if (user == "") "" else remembering(user)
            val open = WebSocket(uri, "Authorization: Bearer $token\r\n$more")
            synchronized(lock) {
                if (closed) return open.close()
                reading = open
            }
            host.put(this, mapOf("type" to "opened", "socket" to open))
            while (true) {
                val message = open.receive() ?: break
                host.put(this, objectOf(Json.parse(message.toString())))
            }
            code = open.closeCode
        } catch (e: NoWebSocket) {
            if (e.status == "401") refusedToken = token
        } catch (e: IOException) {
            // the connection broke
        } catch (e: GlassesError) { // of the attestation
            if (e.code in finalRefusals) return host.put(this, mapOf("type" to "ended", "why" to e.code))
            why = e.code
        }
        synchronized(lock) {
            reading?.drop()
            if (!closed && code !in finalReasons) lock.wait(REOPEN_AFTER_MS)
        }
        host.put(this, mapOf("type" to "lost", "code" to code, "why" to why))
    }

    /** Drops what belongs to a connection that was lost. */
    private fun forget() {
        isAnswering = false
        isBehind = false
        calls.clear()
        val all = updates.toList()
        updates.clear()
        all.forEach { it() }
        silenced.clear()
        for (utterance in spoken.toList()) {
            utterance.item = "" // the next connection does not know it
            if (!utterance.complete) complete(utterance)
        }
    }

    private fun send(event: Map<String, Any?>) {
        try {
            socket?.send(Json.write("the event", event)) ?: return
            isBehind = true
        } catch (e: IOException) {
            // the reader notices
        }
    }

    private fun update(session: Map<String, Any?>, then: () -> Unit) {
        updates.add(then)
        send(mapOf("type" to "session.update", "event_id" to "update", "session" to session + ("type" to "realtime")))
    }

    private fun configure(open: WebSocket) {
        socket = open
        val functions = tools.map { objectOf(it.described()["function"]) + ("type" to "function") }
        update(mapOf("instructions" to instructions, "tools" to functions)) { isAnswering = false }
        val transcription = mapOf("transcription" to emptyMap<String, Any?>())
        update(mapOf("audio" to mapOf("input" to transcription))) {} // by itself: a gateway may refuse it
    }

    private fun hear(event: Event) {
        val audio = Base64.getEncoder().encodeToString(event.data ?: return)
        val transcript = event.payload["transcript"] as? String ?: ""
        val more = if (transcript == "") emptyMap() else mapOf("transcript" to transcript)
        send(mapOf("type" to "input_audio_buffer.append", "audio" to audio) + more)
    }

    private fun handle(event: Map<String, Any?>) {
        isHandling = true
        try {
            when (event["type"]) {
                "opened" -> configure(event["socket"] as WebSocket)
                "lost" -> reopen(event["code"] as Int, event["why"].toString())
                "ended" -> end(event["why"].toString())
                "transcript" -> answerText(event["text"].toString(), event["number"] as Int)
                "session.updated" -> {
                    attempts = 0
                    updates.poll()?.invoke()
                }
                "error" -> refused(objectOf(event["error"]))
                "input_audio_buffer.speech_started" -> interrupt()
                "conversation.item.input_audio_transcription.completed" -> onHeard(event["transcript"].toString())
                else -> handleResponse(event)
            }
        } finally {
            isHandling = false
        }
    }

    private fun refused(error: Map<String, Any?>) {
        if (error["event_id"] == "update") {
            attempts = 0
            updates.poll()?.invoke()
            return
        }
        val code = error["code"].toString()
        if (error["event_id"] == MAY_FAIL || code == "conversation_already_has_active_response") return
        isAnswering = false
        onError(assistantError(code, error["message"].toString()))
    }

    private fun reopen(code: Int, why: String) {
        socket = null
        forget()
        val ending = finalReasons[code]
        if (ending != null) end(ending) else open(why)
    }

    private fun handleResponse(event: Map<String, Any?>) {
        when (event["type"]) {
            "response.created" -> {
                isAnswering = true
                said = ""
            }
            "response.output_audio_transcript.delta" -> {
                said += event["delta"]
                onSaid(said)
            }
            "response.output_audio.delta" ->
                speak(event["item_id"].toString(), Base64.getDecoder().decode(event["delta"].toString()))
            "response.output_audio.done" -> spoken.firstOrNull { it.item == event["item_id"] }?.let { complete(it) }
            "response.function_call_arguments.done" -> {
                val function = mapOf("name" to event["name"], "arguments" to event["arguments"])
                calls.add(mapOf("id" to event["call_id"], "function" to function))
            }
            "response.done" -> respond(objectOf(event["response"]))
        }
    }

    /** Runs the tools that a response called, and asks for the next response. */
    private fun respond(response: Map<String, Any?>) {
        isAnswering = false
        val all = calls.toList()
        calls.clear()
        val status = response["status"]
        if (status == "failed") {
            val why = objectOf(objectOf(response["status_details"])["error"])["code"] as? String ?: "provider_error"
            onError(assistantError(why, "the model failed to answer"))
        }
        if (status != "completed" || all.isEmpty()) return
        for (call in all) {
            val output = host.use(call, tools)["content"]
            val item = mapOf("type" to "function_call_output", "call_id" to call["id"], "output" to output)
            send(mapOf("type" to "conversation.item.create", "item" to item))
        }
        send(mapOf("type" to "response.create"))
    }

    private fun speak(item: String, sound: ByteArray) {
        if (item in silenced) return // the rest of what was stopped or refused
        val utterance = spoken.firstOrNull { it.item == item } ?: Utterance(item).also { spoken.add(it) }
        for (at in sound.indices step CHUNK) {
            utterance.waiting.add(sound.copyOfRange(at, minOf(at + CHUNK, sound.size)))
        }
        play()
    }

    /** Sends the sound of the first answer; the others wait until it was played. */
    private fun play() {
        val first = spoken.peek() ?: return
        if (first.playback == "") {
            first.playback = host.start("playback.start", mapOf("sampleRate" to VOICE_RATE)) { refuse(first, it) }
            first.stopPacing = glasses.every(PACING_PERIOD_MS) { pace(first) }
        }
        while (first.ahead < MAX_AHEAD_MS) {
            val chunk = first.waiting.poll() ?: break
            host.sendBytes("playback.chunk", mapOf("playback" to first.playback), chunk)
            first.ahead += chunk.size * 1000L / (2 * VOICE_RATE)
        }
        if (first.complete && first.waiting.isEmpty()) finish(first)
    }

    /** Sends more sound after a period, in which the glasses have played as much or all that they had. */
    private fun pace(utterance: Utterance) {
        utterance.ahead = maxOf(0, utterance.ahead - PACING_PERIOD_MS)
        if (utterance === spoken.peek()) play()
    }

    private fun complete(utterance: Utterance) {
        utterance.complete = true
        if (utterance === spoken.peek() && utterance.playback != "") play()
    }

    private fun finish(utterance: Utterance) {
        if (utterance.ended) return
        utterance.ended = true
        utterance.stopPacing()
        try {
            host.start("playback.end", emptyMap()) {}
        } catch (e: GlassesError) {
            // the session is over
        }
    }

    /** Drops an answer that the glasses did not begin to play. Without a speaker, the app may show the words. */
    private fun refuse(utterance: Utterance, code: String) {
        if (code != "unsupported") return stop(utterance, 0)
        silenced.add(utterance.item)
        goOn(utterance)
    }

    /** Drops the rest of an answer and tells the model how much of it was heard, if that is known. */
    private fun stop(utterance: Utterance, playedMs: Long?) {
        if (utterance !== spoken.peek()) return
        // Without this, the model would go on with the answer.
        if (!utterance.complete) send(mapOf("type" to "response.cancel", "event_id" to MAY_FAIL))
        silenced.add(utterance.item)
        if (playedMs != null) cut(utterance, playedMs)
        goOn(utterance)
    }

    /** Drops the answer that glasses were playing when they were detached, for which no event arrives. */
    private fun lose(link: Map<String, Any?>) {
        val first = spoken.peek() ?: return
        if (link["state"] == "disconnected" && first.playback != "") stop(first, null)
    }

    /** Goes on after an answer that was played or dropped. */
    private fun goOn(utterance: Utterance) {
        if (utterance !== spoken.peek()) return
        spoken.remove()
        utterance.stopPacing()
        play()
    }

    private fun played(report: Map<String, Any?>) {
        val first = spoken.peek() ?: return
        if (report["state"] == "started" || first.playback != report["id"]) return
        val why = report["reason"] as? String ?: ""
        if (report["state"] == "stopped" && why != "") stop(first, playedMs(report)) else goOn(first)
    }

    private fun playedMs(report: Map<String, Any?>): Long = (report["playedMs"] as? Number)?.toLong() ?: 0L

    /** Stops the sound and tells the model how much of it was heard. */
    private fun interrupt() {
        val all = spoken.toList()
        spoken.clear()
        val first = all.firstOrNull()
        if (first == null || first.playback == "") return
        first.stopPacing()
        silenced.addAll(all.map { it.item })
        cut(first, playedMs(attempt("playback.flush")))
        all.drop(1).forEach { cut(it, 0) }
    }

    /** Truncates an answer to what was heard, or deletes it if that is nothing. */
    private fun cut(utterance: Utterance, playedMs: Long) {
        val item = mapOf("event_id" to MAY_FAIL, "item_id" to utterance.item)
        when {
            utterance.item == "" -> return
            playedMs == 0L -> send(mapOf("type" to "conversation.item.delete") + item)
            else -> send(mapOf("type" to "conversation.item.truncate", "content_index" to 0,
                "audio_end_ms" to playedMs) + item)
        }
    }

    /** Stops the answer to what the wearer said before, and keeps a final transcript for answerText. */
    private fun interruptText(transcript: Map<String, Any?>) {
        val number = ++transcripts
        glasses.stopAsking()
        attempt("speech.stop")
        if (transcript["final"] != true) return
        take(mapOf("type" to "transcript", "text" to transcript["text"], "number" to number))
    }

    /** Answers a transcript with ask and say. */
    private fun answerText(text: String, number: Int) {
        onHeard(text)
        if (number != transcripts || reason != "") return // the wearer has spoken again
        try {
            val asked = messages + mapOf("role" to "user", "content" to text)
            val answer = glasses.ask(asked, if (instructions == "") null else instructions, tools, user != "", onSaid)
            messages = answer.messages
            if (reason == "") attempt("speech.say", mapOf("text" to answer.text.take(2000)))
        } catch (e: GlassesError) {
            if (e === host.ended) throw e
            if (e.code != "cancelled") onError(e)
            if (e.code in listOf("no_credit", "cap_reached", "credit_locked", "invalid_key")) end(e.code)
        }
    }
}
//: end
