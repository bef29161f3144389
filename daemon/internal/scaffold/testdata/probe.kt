// An app for the tests: it reports in log frames what it saw.
import service.AssistantAnswer
import service.AssistantTool
import service.Event
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

fun ask(glasses: Glasses, question: String) {
    val properties = mapOf("city" to mapOf("type" to "string"))
    val city = mapOf("type" to "object", "properties" to properties, "required" to listOf("city"))
    val tools = listOf(
        AssistantTool("weather", "Tells the weather.", city) {
            glasses.sleep(500)
            mapOf("celsius" to 21, "city" to it["city"])
        },
        AssistantTool("photo", "Takes a photo.") { "${glasses.photo(640).data.size} bytes" }
    )
    glasses.on("battery") { glasses.stopAsking() }
    tell(glasses, glasses.ask(question, "Be brief.", tools) { glasses.log("com.example.text", mapOf("text" to it)) })
}

fun tell(glasses: Glasses, answer: AssistantAnswer) =
    glasses.log("com.example.answer", mapOf("text" to answer.text, "roles" to answer.messages.map { it["role"] }))

fun handle(glasses: Glasses, event: Event) {
    val target = event.payload["target"].toString()
    if (target.startsWith("ask ")) return ask(glasses, target.substring(4))
    when (target) {
        "photo" -> {
            val photo = glasses.photo(640)
            glasses.log("com.example.photo", mapOf("bytes" to photo.data.size, "first" to (photo.data[0].toInt() and 255), "width" to photo.width))
        }
        "audio" -> glasses.startAudio(8000) { glasses.log("com.example.chunk", mapOf("bytes" to it.data!!.size)) }
        "timers" -> {
            glasses.on("battery") { glasses.log("com.example.battery", mapOf("level" to it.payload["level"])) }
            var turns = 0
            var stop = {}
            stop = glasses.every(1000) {
                glasses.log("com.example.turn", mapOf("turn" to ++turns))
                if (turns == 2) stop()
            }
            glasses.after(300) { glasses.log("com.example.once", mapOf()) }
            val cancel = glasses.after(50) { glasses.log("com.example.cancelled", mapOf()) }
            cancel()
            cancel()
        }
        "long" -> glasses.after(600500) { glasses.log("com.example.once", mapOf()) }
        "busy" -> glasses.every(100) {
            glasses.sleep(1000)
            glasses.log("com.example.turn", mapOf())
        }
        "wait" -> {
            val next = glasses.next(400)
            glasses.log("com.example.next", mapOf("target" to (next?.payload?.get("target") ?: "none")))
        }
        "converse" -> {
            val messages = glasses.ask("Hello").messages
            tell(glasses, glasses.ask(messages + mapOf("role" to "user", "content" to "Bye")))
        }
        "remember" -> tell(glasses, glasses.ask("Hello", remember = true))
        "memory" -> glasses.log("com.example.memory", mapOf("text" to glasses.memory()))
        "forget" -> {
            glasses.forget()
            glasses.log("com.example.forgotten", emptyMap())
        }
        "talk" -> {
            glasses.on("battery") { glasses.stopConversing() }
            try {
                val end = glasses.converse(
                    "Be brief.", onHeard = {
                        if (it == "Break") throw GlassesError("own", "of the app itself")
                        glasses.log("com.example.heard", mapOf("text" to it))
                    },
                    onSaid = { glasses.log("com.example.said", mapOf("text" to it)) }
                )
                glasses.log("com.example.ended", mapOf("reason" to end.reason, "mode" to end.mode))
            } catch (e: GlassesError) {
                if (e.code == "closed") throw e
                glasses.log("com.example.ended", mapOf("reason" to e.code))
            }
        }
        "connection" -> glasses.on("connection") { glasses.log("com.example.connection", it.payload + mapOf("at" to it.at)) }
        "never" -> glasses.every(0) {}
        "not json" -> glasses.show(mapOf("type" to "progress", "value" to Double.NaN))
        "state" -> glasses.log("com.example.state", glasses.initialState)
        "sleep" -> {
            glasses.sleep(2000)
            glasses.say("Grüße")
        }
        else -> glasses.show(mapOf("type" to "text", "text" to target))
    }
}

fun main() {
    try {
        val attestation = attestation()
        val glasses = connect(Settings("probe", "1", release = false, attestation = attestation))
        glasses.show(mapOf("type" to "text", "text" to "ready"))
        glasses.run { event ->
            try {
                val target = event.payload["target"].toString()
                if (event.type == "input" && !attest(glasses, attestation, target)) handle(glasses, event)
            } catch (e: GlassesError) {
                if (e.code == "closed") throw e
                val part = if (e.part == "") emptyMap() else mapOf("part" to e.part, "by" to e.by)
                val hint = if (e.fixHint == "") emptyMap()
                else mapOf("fixHint" to e.fixHint, "retryAfterMs" to e.retryAfterMs)
                glasses.log("com.example.error", mapOf("code" to e.code, "message" to e.message) + part + hint)
            }
        }
        println("closed")
    } catch (e: GlassesError) {
        println(e.code)
    }
}
