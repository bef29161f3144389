private const val MAX_QUEUE = 1000 // events that nobody took yet; the oldest go first
private const val MAX_SEEN = 500 // ids of events that came

/** Attaches to the session and returns once it is welcomed. It blocks: on Android call it, and the methods of Glasses, from
 * one thread that is not the main one. Errors: not_configured, simulator_refused, transport_unavailable, refused,
 * not_connected. */
fun connect(settings: Settings): Glasses = Glasses(settings).apply { ready() }

/** What a command brought: its id, the payload of its result, and the bytes of its media. */
class Answer(val id: String, val result: Map<String, Any?>, val data: ByteArray?)

/**
 * One attached session, for one thread of the app. Every command throws a GlassesError when the glasses refuse it. Events come
 * out of next() in order; those of types with a handler go to it instead, while the app waits in next() or run().
 */
class Glasses internal constructor(settings: Settings) : Closeable {
    /** The glasses as the service describes them: panel, inputs, camera, ... */
    var device: Map<String, Any?> = emptyMap()
        private set
    private val inbox = LinkedBlockingQueue<Frame>() // what the app's thread has not looked at; the last one is "end"
    @Volatile private var ended: GlassesError? = null
    private val results = HashMap<String, Map<String, Any?>?>() // of commands under way
    private val media = HashMap<String, ByteArray>()
    private val events = ArrayDeque<Event>()
    private val handlers = HashMap<String, MutableList<(Event) -> Unit>>()
    private val seen = LinkedHashSet<String>()
    private val way = Link(target(settings), linkedMapOf("name" to settings.name, "version" to settings.version), { inbox.put(it) }) {
        ended = it
        inbox.put(Frame("end", "", 0, 0, emptyMap(), null))
    }

    internal fun ready() = until { device.isNotEmpty() }

    /** The way to the glasses: connected, lossy, lost, disconnected; offline while the service is away; closed. */
    val link: String get() = way.state

    /** Ends the session for this app; what waits is refused with the code closed. Any thread may call it. */
    override fun close() = way.close(GlassesError("closed", "the app closed the connection"))

    //: if display
    /** Replaces what the panel shows by a display tree, e.g. mapOf("type" to "text", "text" to "Hello"). */
    fun show(tree: Map<String, Any?>) {
        command("display.show", mapOf("tree" to tree))
    }

    fun clear() {
        command("display.clear")
    }

    //: end
    //: if speech
    /** Speaks to the wearer. Returns, with the id that the speech event will name, when the glasses begin. */
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
    /** Tells which phrases the app understands; replaces the last list. */
    fun announce(phrases: List<String>) {
        command("phrases.announce", mapOf("phrases" to phrases))
    }

    //: end
    //: if transcription
    /** What the wearer says comes as transcript events; handler is a short way to on("transcript"). */
    fun startTranscription(language: String? = null, handler: ((Event) -> Unit)? = null) =
        start("transcription.start", mapOf("language" to language), "transcript", handler)

    fun stopTranscription() = stop("transcription.stop", "transcript")

    //: end
    //: if microphone
    /** Sound comes as audio.chunk events: data is 16-bit little-endian PCM, one channel, 100 ms. */
    fun startAudio(sampleRate: Int? = null, handler: (Event) -> Unit) =
        start("audio.start", mapOf("sampleRate" to sampleRate), "audio.chunk", handler)

    fun stopAudio() = stop("audio.stop", "audio.chunk")

    //: end
    //: if camera
    /** Takes a photo, a JPEG. */
    fun photo(width: Int? = null): Media = mediaOf(command("camera.photo", mapOf("width" to width)))

    /** Takes a clip, Motion JPEG; returns when it is taken. */
    fun clip(durationMs: Long, fps: Int? = null, width: Int? = null): Media =
        mediaOf(command("camera.video", mapOf("durationMs" to durationMs, "fps" to fps, "width" to width)))

    /** Pictures come as video.frame events: data is a JPEG. */
    fun startVideo(fps: Int? = null, width: Int? = null, handler: (Event) -> Unit) =
        start("video.start", mapOf("fps" to fps, "width" to width), "video.frame", handler)

    fun stopVideo() = stop("video.stop", "video.frame")

    private fun mediaOf(answer: Answer): Media = Media(
        answer.data ?: throw GlassesError("media_lost", "the connection broke while the picture was on its way; take it again"),
        objectOf(answer.result["media"])
    )

    //: end
    //: if motion
    /** Movement comes as motion events: thousandths of g and of a degree a second. */
    fun startMotion(hz: Int? = null, handler: (Event) -> Unit) = start("motion.start", mapOf("hz" to hz), "motion", handler)

    fun stopMotion() = stop("motion.stop", "motion")

    //: end
    /** Waits on the session's clock, which may be virtual. Use it instead of Thread.sleep. */
    fun sleep(ms: Long) {
        command("clock.sleep", mapOf("ms" to ms))
    }

    /** Calls handler for each event of a type. Returns how to stop that. Of type "connection" are {state: online | offline}: the
     * service came or went. */
    fun on(type: String, handler: (Event) -> Unit): () -> Unit {
        val list = handlers.getOrPut(type) { ArrayList() }
        list.add(handler)
        return { list.remove(handler) }
    }

    /** The next event without a handler. Throws the code closed at the end. */
    fun next(): Event {
        while (true) {
            val event = events.poll()
            if (event == null) {
                until { events.isNotEmpty() }
                continue
            }
            val list = handlers[event.type]?.toList() ?: emptyList()
            list.forEach { it(event) }
            if (list.isEmpty() && event.type != "connection" && event.data == null) return event
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

    /** Tells the session's log something of the app's own, e.g. log("com.example.score", mapOf("points" to 3)). */
    fun log(type: String, payload: Map<String, Any?>) {
        way.send(type, payload) {}
    }

    /** Any command of the protocol; the methods above are made of it. */
    fun command(type: String, payload: Map<String, Any?> = emptyMap()): Answer {
        val id = way.send(type, payload.filterValues { it != null }) { results[it] = null }
        try {
            until { results[id] != null }
            val result = results[id] ?: emptyMap()
            val error = objectOf(result["error"])
            if (error.isNotEmpty()) throw GlassesError(error["code"].toString(), error["message"].toString())
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
    /** Looks at what came, on the app's thread, until there() holds. Here the app waits for the glasses, so that barriers are
     * answered. */
    private fun until(there: () -> Boolean) {
        while (!there()) {
            val frame = inbox.take()
            if (frame.type == "end") {
                inbox.put(frame) // for who waits next
                throw ended ?: GlassesError("closed", "the session is closed")
            }
            look(frame)
        }
    }

    private fun look(frame: Frame) {
        when (frame.type) {
            "barrier" -> way.passed(frame.id)
            "result" -> if (results.containsKey(frame.id)) results[frame.id] = frame.payload
            "media" -> if (results.containsKey(frame.id) && frame.data != null) media[frame.id] = frame.data
            "welcome" -> {
                device = objectOf(frame.payload["deviceModel"])
                keep(Event("connection", "", frame.at, mapOf("state" to "online"), null))
            }
            else -> if (frame.data != null || !again(frame.id)) {
                if (frame.type == "device") device = objectOf(frame.payload["deviceModel"])
                keep(Event(frame.type, frame.id, frame.at, frame.payload, frame.data))
            }
        }
    }

    private fun keep(event: Event) {
        events.add(event)
        if (events.size > MAX_QUEUE) events.poll()
    }

    /** Tells whether an event came before: after a restart the service may send one twice. */
    private fun again(id: String): Boolean {
        if (id == "") return false
        if (!seen.add(id)) return true
        if (seen.size > MAX_SEEN) seen.remove(seen.first())
        return false
    }
}
