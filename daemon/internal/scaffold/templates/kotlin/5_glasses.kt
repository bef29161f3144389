private const val LONGEST_SLEEP_MS = 600000L // of one clock.sleep
private const val MAX_QUEUE = 1000 // events not taken yet; the oldest are dropped first
private const val MAX_SEEN = 500 // ids of received events

/** Attaches to the session and returns once it is welcomed. It blocks: on Android call it, and the methods of Glasses,
 * from one thread that is not the main one. Errors: not_configured, simulator_refused, transport_unavailable, refused,
 * not_connected. */
fun connect(settings: Settings): Glasses = Glasses(settings).apply { ready() }

/** The result of a command: its id, the payload of its result, and the bytes of its media. */
class Answer(val id: String, val result: Map<String, Any?>, val data: ByteArray?)

/** A timer of after or every: its clock.sleep is in progress, or it waits for glasses. Durations are in ms. */
private class Timer(val task: () -> Unit, var left: Long, val period: Long) {
    var id = "" // of its clock.sleep; left is the time to sleep after that
    var asked = 0L // duration of that sleep
    var due: Long? = null // when that sleep ends, on the session's clock
}

/**
 * One attached session, for one thread of the app. Every command throws a GlassesError when the glasses refuse it.
 * Events come out of next() in order; those of types with a handler go to it instead. Handlers and timers run on this
 * thread whenever the app waits: in next() and run(), and during sleep() and every other command, which then returns
 * after them and throws what they throw. While a handler or timer runs, it is not called again.
 */
class Glasses internal constructor(private val settings: Settings) : Closeable {
    /** The glasses as the service describes them: panel, inputs, camera, ... */
    var device: Map<String, Any?> = emptyMap()
        private set
    /** The state of the glasses when the app attached: battery, worn, hinge, thermal, link, route, call, permissions,
     * disabled, clock. An event reports each later change. */
    var initialState: Map<String, Any?> = emptyMap()
        private set
    private val inbox = LinkedBlockingQueue<Frame>() // frames that the app's thread has not read; the last one is "end"
    @Volatile private var ended: GlassesError? = null
    private val results = HashMap<String, Map<String, Any?>?>() // of commands in progress
    private val media = HashMap<String, ByteArray>()
    private val events = ArrayDeque<Event>()
    private val handlers = HashMap<String, MutableList<(Event) -> Unit>>()
    private val handled = ArrayDeque<Event>() // for handlers
    private val timers = HashMap<String, Timer>() // by the id of their clock.sleep
    private val stalled = ArrayList<Timer>() // until glasses are attached
    private val dueTimers = ArrayDeque<Timer>()
    private val running = HashSet<Any>() // timers, and types of events whose handlers run
    private val seen = LinkedHashSet<String>()
    private var calls = 0 // to the AI gateway, in progress
    //: if assistant
    private var sessionGateway: Map<String, Any?> = emptyMap() // url and token of the AI gateway
    private val gateway get() = sessionGateway.ifEmpty { settings.attestation?.gateway ?: emptyMap() }
    private var stops = 0 // how often stopAsking was called
    private var conversation: Conversation? = null
    private val refusals = HashMap<String, (String) -> Unit>() // by the id of a command that nobody waits for
    //: end
    private val way = Link(target(settings), linkedMapOf("name" to settings.name, "version" to settings.version), { inbox.put(it) }) {
        ended = it
        inbox.put(Frame("end", "", 0, 0, emptyMap(), null))
    }

    internal fun ready() = until { device.isNotEmpty() }

    /** The connection to the glasses: connected, lossy, lost, disconnected; offline while the service is unreachable;
     * closed. */
    val link: String get() = way.state

    /** Ends the session for this app; pending calls fail with the code closed. Any thread may call it. */
    override fun close() = way.close(GlassesError("closed", "the app closed the connection"))

    //: if display
    /** Replaces the content of the panel with a display tree, e.g. mapOf("type" to "text", "text" to "Hello"). */
    fun show(tree: Map<String, Any?>) {
        command("display.show", mapOf("tree" to tree))
    }

    fun clear() {
        command("display.clear")
    }

    //: end
    //: if speech
    /** Speaks to the wearer. Returns when the glasses begin, with the id that the speech event will name. */
    fun say(text: String, language: String? = null): String = command("speech.say", mapOf("text" to text, "language" to language)).id

    fun stopSaying() {
        command("speech.stop")
    }

    //: end
    //: if sound
    /** Plays chime, success, error or tick. */
    fun play(sound: String) {
        command("sound.play", mapOf("sound" to sound))
    }

    //: end
    //: if phrases
    /** Announces the phrases that the app understands; replaces the previous list. */
    fun announce(phrases: List<String>) {
        command("phrases.announce", mapOf("phrases" to phrases))
    }

    //: end
    //: if transcription
    /** What the wearer says arrives as transcript events; handler is short for on("transcript"). */
    fun startTranscription(language: String? = null, handler: ((Event) -> Unit)? = null) =
        start("transcription.start", mapOf("language" to language), "transcript", handler)

    fun stopTranscription() = stop("transcription.stop", "transcript")

    //: end
    //: if microphone
    /** Sound arrives as audio.chunk events: data is 16-bit little-endian PCM, one channel, 100 ms. */
    fun startAudio(sampleRate: Int? = null, handler: (Event) -> Unit) =
        start("audio.start", mapOf("sampleRate" to sampleRate), "audio.chunk", handler)

    fun stopAudio() = stop("audio.stop", "audio.chunk")

    //: end
    //: if camera
    /** Takes a photo, a JPEG. */
    fun photo(width: Int? = null): Media = mediaOf(command("camera.photo", mapOf("width" to width)))

    /** Records a clip, Motion JPEG; returns when it is complete. */
    fun clip(durationMs: Long, fps: Int? = null, width: Int? = null): Media =
        mediaOf(command("camera.video", mapOf("durationMs" to durationMs, "fps" to fps, "width" to width)))

    /** Pictures arrive as video.frame events: data is a JPEG. */
    fun startVideo(fps: Int? = null, width: Int? = null, handler: (Event) -> Unit) =
        start("video.start", mapOf("fps" to fps, "width" to width), "video.frame", handler)

    fun stopVideo() = stop("video.stop", "video.frame")

    private fun mediaOf(answer: Answer): Media = Media(
        answer.data ?: throw GlassesError("media_lost", "the connection broke while the picture was being sent; take it again"),
        objectOf(answer.result["media"])
    )

    //: end
    //: if motion
    /** Movement arrives as motion events: thousandths of g and of a degree a second. */
    fun startMotion(hz: Int? = null, handler: (Event) -> Unit) = start("motion.start", mapOf("hz" to hz), "motion", handler)

    fun stopMotion() = stop("motion.stop", "motion")

    //: end
    //: if assistant
    /** Asks the model of the session's AI gateway a question, see the other ask. */
    fun ask(
        question: String, system: String? = null, tools: List<AssistantTool> = emptyList(), remember: Boolean = false,
        onText: (String) -> Unit = {}
    ): AssistantAnswer =
        ask(listOf(mapOf("role" to "user", "content" to question)), system, tools, remember, onText)

    /**
     * Asks the model of the session's AI gateway for the next message of a conversation, which is a list like
     * AssistantAnswer.messages. onText gets the text of the model's message so far, whenever more of it arrives. When
     * the model calls a tool, its run is called here, and the model answers again, up to 8 times. Virtual time stands
     * still while the gateway works; handlers and timers still run. Errors have fixHint, and retryAfterMs if
     * waiting helps: no_gateway, cancelled, gateway_unreachable, gateway_timeout, answer_broken, bad_answer,
     * too_many_rounds, those of Attestation.token, and the gateway's codes: no_credit, credit_reserved, credit_locked,
     * cap_reached, request_too_large, model_not_found, not_configured, provider_busy, ... remember states that the
     * wearer agreed that the service remembers what is said; the model then knows it later.
     */
    fun ask(
        conversation: List<Map<String, Any?>>, system: String? = null, tools: List<AssistantTool> = emptyList(),
        remember: Boolean = false, onText: (String) -> Unit = {}
    ): AssistantAnswer {
        val messages = ArrayList(conversation)
        val before = if (system == null) emptyList() else listOf(mapOf("role" to "system", "content" to system))
        val request = linkedMapOf<String, Any?>("model" to "assistant", "stream" to true)
        if (tools.isNotEmpty()) request["tools"] = tools.map { it.described() }
        var headers = "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
        if (remember) headers += remembering(user())
        val began = stops
        for (round in 0 until MAX_ROUNDS) {
            val body = Json.write("the conversation", request + ("messages" to before + messages)).toByteArray()
            val message = callGateway(AssistantRequest("POST", "/chat/completions", headers, body), began, onText)
            messages.add(message)
            val toolCalls = message["tool_calls"] as? List<*>
                ?: return AssistantAnswer(message["content"].toString(), messages)
            for (call in toolCalls) {
                messages.add(use(objectOf(call), tools))
                checkStop(began)
            }
        }
        throw assistantError("too_many_rounds", "the model still calls tools after $MAX_ROUNDS answers")
    }

    private fun user() = userOf(settings.name, settings.user)

    /** Returns what the service remembers about the user; "" if that is nothing. */
    fun memory(): String = profile("GET")["profile"] as? String ?: ""

    /** Deletes what the service remembers about the user. */
    fun forget() {
        profile("DELETE")
    }

    private fun profile(method: String) =
        callGateway(AssistantRequest(method, "/memory", "X-Service-User: ${user()}\r\n", null), null) {}

    /** Ends every ask in progress, e.g. from a handler: it throws the code cancelled. */
    fun stopAsking() {
        stops++
    }

    /**
     * Speaks with the wearer until stopConversing, e.g. from a handler: the model hears the microphone and answers with
     * sound, which stops when the wearer speaks again. Its tools run here, as for ask. onHeard gets what the wearer
     * said, onSaid the text of the answer so far, onError why an answer failed. Without a realtime model it uses
     * transcripts, ask and say instead. Use neither startAudio nor startTranscription meanwhile. It continues by itself
     * after a lost connection, a phone call or folded glasses, but after a lost connection the model has forgotten what
     * was said. remember and errors: as for ask.
     */
    fun converse(
        instructions: String = "", tools: List<AssistantTool> = emptyList(),
        onHeard: (String) -> Unit = {}, onSaid: (String) -> Unit = {},
        onError: (GlassesError) -> Unit = { System.err.println("no answer (${it.code}): ${it.message} ${it.fixHint}") },
        remember: Boolean = false
    ): ConversationEnd {
        if (conversation != null) throw assistantError("busy", "a conversation is running already")
        try {
            val user = if (remember) user() else ""
            return Conversation(conversationHost(), instructions, tools, user, onHeard, onSaid, onError)
                .also { conversation = it }.run()
        } finally {
            conversation = null
        }
    }

    /** Ends the conversation: converse returns with the reason stopped. */
    fun stopConversing() {
        conversation?.end("stopped")
    }

    private fun conversationHost() = object : ConversationHost {
        override val glasses = this@Glasses
        override val gateway get() = this@Glasses.gateway
        override val ended get() = this@Glasses.ended

        override fun until(there: () -> Boolean) = this@Glasses.until(there)

        override fun put(conversation: Conversation, event: Map<String, Any?>) =
            inbox.put(Frame("", "", 0, 0, mapOf("conversation" to conversation, "event" to event), null))

        override fun start(type: String, payload: Map<String, Any?>, refused: (String) -> Unit) =
            way.send(type, payload) { refusals[it] = refused }

        override fun sendBytes(type: String, payload: Map<String, Any?>, data: ByteArray) =
            way.sendBytes(type, payload, data)

        override fun answer(barrier: String) = look(Frame("barrier", barrier, 0, 0, emptyMap(), null))

        override fun use(call: Map<String, Any?>, tools: List<AssistantTool>) = this@Glasses.use(call, tools)
    }

    private fun checkStop(began: Int?) {
        if (began != null && stops != began) throw assistantError("cancelled", "the app stopped asking")
    }

    /** The answer to a request: the model's message, or an object. A token that expires meanwhile is replaced once. */
    private fun callGateway(request: AssistantRequest, began: Int?, onText: (String) -> Unit): Map<String, Any?> {
        val to = gateway
        try {
            return exchange(to, request, began, onText)
        } catch (e: GlassesError) {
            if (e.code != "invalid_key" || gateway == to) throw e
        }
        return exchange(gateway, request, began, onText)
    }

    private fun exchange(
        to: Map<String, Any?>, request: AssistantRequest, began: Int?, onText: (String) -> Unit
    ): Map<String, Any?> {
        if (to.isEmpty()) throw assistantError("no_gateway", "this session has no AI gateway")
        calls++
        // A virtual clock does not measure how long the gateway takes.
        val quiet = if (initialState["clock"] == "virtual") 0 else ASSISTANT_QUIET_MS
        val call = AssistantCall(to, request, quiet, { calls-- }) { call, part ->
            inbox.add(Frame("", "", 0, 0, mapOf("call" to call, "part" to part), null)) // put fails if interrupted
        }
        try {
            while (true) {
                until { call.parts.isNotEmpty() || began != null && stops != began }
                checkStop(began)
                when (val part = call.parts.remove()) {
                    is GlassesError -> throw part
                    is Map<*, *> -> return objectOf(part)
                    else -> onText(part.toString())
                }
            }
        } finally {
            call.close()
        }
    }

    /** Runs the tool of a call. Mistakes of the model and refusals by the glasses are reported to the model. */
    private fun use(call: Map<String, Any?>, tools: List<AssistantTool>): Map<String, Any?> {
        val function = objectOf(call["function"])
        val tool = tools.firstOrNull { it.name == function["name"] }
        val text = function["arguments"].toString()
        val given = try {
            Json.parse(text.ifEmpty { "{}" }) as? Map<*, *>
        } catch (e: IOException) {
            null
        }
        val result = if (tool == null) mapOf("error" to "there is no tool with this name")
        else if (given == null) mapOf("error" to "the arguments are not a JSON object")
        else try {
            tool.run(objectOf(given))
        } catch (e: GlassesError) {
            if (e === ended || e.code == "cancelled") throw e
            mapOf("error" to mapOf("code" to e.code, "message" to e.message))
        }
        val content = result as? String ?: Json.write("the result of a tool", result)
        return mapOf("role" to "tool", "tool_call_id" to call["id"], "content" to content)
    }

    //: end
    /** Waits on the session's clock, which may be virtual. Use it instead of Thread.sleep. */
    fun sleep(ms: Long) {
        command("clock.sleep", mapOf("ms" to ms))
    }

    /** Calls task once, after ms on the session's clock. Returns a function that cancels it. */
    fun after(ms: Long, task: () -> Unit): () -> Unit = time(ms, 0, 0, task)

    /** Calls task every ms on the session's clock. A call that is due while task still runs is skipped. Returns a
     * function that cancels it. */
    fun every(ms: Long, task: () -> Unit): () -> Unit = time(ms, 1, ms, task)

    /** Calls handler for each event of a type. Returns a function that stops it. Type "connection" has
     * {state: online | offline}: whether the service is reachable. */
    fun on(type: String, handler: (Event) -> Unit): () -> Unit {
        val list = handlers.getOrPut(type) { ArrayList() }
        list.add(handler)
        return { list.remove(handler) }
    }

    /** The next event without a handler. Throws the code closed at the end. */
    fun next(): Event {
        while (true) {
            pop()?.let { return it }
            until { events.isNotEmpty() }
        }
    }

    /** The next event without a handler; null if none came within timeoutMs of the session's clock. */
    fun next(timeoutMs: Long): Event? {
        pop()?.let { return it }
        var late = false
        val cancel = after(timeoutMs) { late = true }
        try {
            while (true) {
                until { late || events.isNotEmpty() }
                val event = pop()
                if (event != null || late) return event
            }
        } finally {
            cancel()
        }
    }

    /** Serves the handlers, and each for events without one, until the session is closed. */
    fun run(each: (Event) -> Unit = {}) {
        while (true) {
            val event = try {
                next()
            } catch (e: GlassesError) {
                if (e === ended && e.code == "closed") return
                throw e
            }
            each(event)
        }
    }

    /** Writes an event of the app to the session's log, e.g. log("com.example.score", mapOf("points" to 3)). */
    fun log(type: String, payload: Map<String, Any?>) {
        way.send(type, payload) {}
    }

    /** Sends any command of the protocol; the methods above use it. */
    fun command(type: String, payload: Map<String, Any?> = emptyMap()): Answer {
        val id = way.send(type, payload.filterValues { it != null }) { results[it] = null }
        try {
            until { results[id] != null }
            val result = results[id] ?: emptyMap()
            val error = objectOf(result["error"])
            if (error.isNotEmpty()) {
                throw GlassesError(error["code"].toString(), error["message"].toString(), error["part"] as? String ?: "",
                    error["by"] as? String ?: "")
            }
            return Answer(id, result, media[id])
        } finally {
            results.remove(id)
            media.remove(id)
        }
    }

    //: if transcription,microphone,camera,motion
    private fun start(type: String, payload: Map<String, Any?>, event: String, handler: ((Event) -> Unit)?) {
        val off = handler?.let { on(event, it) }
        try {
            command(type, payload)
        } catch (e: GlassesError) {
            off?.invoke()
            throw e
        }
    }

    private fun stop(type: String, event: String) {
        command(type)
        handlers.remove(event)
    }

    //: end
    private fun time(ms: Long, least: Long, period: Long, task: () -> Unit): () -> Unit {
        if (ms < least) throw GlassesError("bad_payload", "$ms ms is less than $least")
        val timer = Timer(task, ms, period)
        sleepFor(timer)
        return { cancel(timer) }
    }

    private fun sleepFor(timer: Timer) {
        timer.asked = minOf(timer.left, LONGEST_SLEEP_MS)
        timer.id = way.send("clock.sleep", mapOf("ms" to timer.asked)) {}
        timer.left -= timer.asked
        timers[timer.id] = timer
    }

    private fun cancel(timer: Timer) {
        stalled.remove(timer)
        dueTimers.remove(timer)
        if (timers.remove(timer.id) == null || ended != null) return
        try {
            way.send("clock.cancel", mapOf("id" to timer.id)) {}
        } catch (e: GlassesError) {
            if (e.code != "closed") throw e // after the end there is nothing to cancel
        }
    }

    private fun tick(timer: Timer, frame: Frame) {
        val error = objectOf(frame.payload["error"])
        when {
            error["code"] == "not_connected" || error["code"] == "timeout" -> {
                timer.left += timer.asked // it is not known how much of it has passed
                timer.due = null
                if (error["code"] == "not_connected" && link == "disconnected") stalled.add(timer)
                else sleepFor(timer) // also if glasses were attached while the app was away
            }
            error.isNotEmpty() -> throw GlassesError(error["code"].toString(), error["message"].toString())
            timer.left > 0 -> sleepFor(timer)
            else -> {
                if (timer.period > 0) sleepAgain(timer, frame.at)
                if (timer !in dueTimers && timer !in running) dueTimers.add(timer)
            }
        }
    }

    /** Sleeps until the next call is due; a late answer does not delay it. */
    private fun sleepAgain(timer: Timer, at: Long) {
        timer.left = timer.due?.let { minOf(it + timer.period - at, timer.period) } ?: timer.period
        if (timer.left <= 0) timer.left = timer.period // calls were missed
        timer.due = at + timer.left
        sleepFor(timer)
    }

    private fun resume() {
        val all = stalled.toList()
        stalled.clear()
        all.forEach { sleepFor(it) }
    }

    /** Runs handlers and timers and reads frames, on the app's thread, until there() holds. Here the app waits for the
     * glasses, so that barriers are answered. */
    private fun until(there: () -> Boolean) {
        while (!there()) {
            if (work()) continue
            //: if assistant
            conversation?.waits()
            //: end
            val frame = inbox.take()
            if (frame.type == "end") {
                inbox.put(frame) // for the next waiter
                throw ended ?: GlassesError("closed", "the session is closed")
            }
            look(frame)
        }
    }

    /** Runs one timer or the handlers of one event, the first that is not already running. Reports whether there was
     * one. */
    private fun work(): Boolean {
        dueTimers.poll()?.let { timer ->
            run(timer) { timer.task() }
            return true
        }
        val event = handled.firstOrNull { it.type !in running } ?: return false
        handled.remove(event)
        run(event.type) { handlers[event.type]?.toList()?.forEach { it(event) } }
        return true
    }

    private fun run(what: Any, task: () -> Unit) {
        running.add(what)
        try {
            task()
        } finally {
            running.remove(what)
        }
    }

    private fun look(frame: Frame) {
        //: if assistant
        (frame.payload["call"] as? AssistantCall)?.let { return it.take(frame.payload["part"]) }
        (frame.payload["conversation"] as? Conversation)?.let { return it.take(objectOf(frame.payload["event"])) }
        //: end
        when (frame.type) {
            "barrier" -> {
                //: if assistant
                if (conversation?.catchUp(frame.id) == true) return // the gateway may still react to what it was sent
                if (conversation?.isAnswering == true) return way.passed(frame.id, calls + 1)
                //: end
                way.passed(frame.id, calls)
            }
            "gateway.token" -> { // not an event: it contains a secret
                //: if assistant
                sessionGateway = frame.payload
                //: end
            }
            "result" -> {
                val timer = timers.remove(frame.id)
                if (timer != null) tick(timer, frame) else if (results.containsKey(frame.id)) results[frame.id] = frame.payload
                //: if assistant
                val refused = refusals.remove(frame.id)
                val error = objectOf(frame.payload["error"])
                if (error.isNotEmpty()) refused?.invoke(error["code"].toString())
                //: end
            }
            "media" -> if (results.containsKey(frame.id) && frame.data != null) media[frame.id] = frame.data
            "welcome" -> {
                initialState = objectOf(frame.payload["glasses"])
                //: if assistant
                sessionGateway = objectOf(frame.payload["gateway"])
                //: end
                device = objectOf(frame.payload["deviceModel"])
                keep(Event("connection", "", frame.at, mapOf("state" to "online"), null))
                if (frame.payload["link"] != "disconnected") resume()
            }
            else -> if (frame.data != null || !again(frame.id)) {
                if (frame.type == "device") device = objectOf(frame.payload["deviceModel"])
                keep(Event(frame.type, frame.id, frame.at, frame.payload, frame.data))
                if (frame.type == "link" && frame.payload["state"] != "disconnected") resume()
            }
        }
    }

    private fun keep(event: Event) {
        val queue = if (handlers[event.type].isNullOrEmpty()) events else handled
        queue.add(event)
        if (queue.size > MAX_QUEUE) queue.poll()
    }

    /** The oldest event without a handler. A handler may have come after the event. */
    private fun pop(): Event? {
        while (true) {
            val event = events.poll() ?: return null
            if (!handlers[event.type].isNullOrEmpty()) handled.add(event)
            else if (event.type != "connection" && event.data == null) return event
        }
    }

    /** Reports whether an event was received before: after a restart the service may send one twice. */
    private fun again(id: String): Boolean {
        if (id == "") return false
        if (!seen.add(id)) return true
        if (seen.size > MAX_SEEN) seen.remove(seen.first())
        return false
    }
}
