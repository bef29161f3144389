// An app for the tests: it tells by log frames what it saw.
import service.Event
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

fun handle(glasses: Glasses, event: Event) {
    when (val target = event.payload["target"].toString()) {
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
        "never" -> glasses.every(0) {}
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
        val glasses = connect(Settings("probe", "1", release = false))
        glasses.show(mapOf("type" to "text", "text" to "ready"))
        glasses.run { event ->
            try {
                if (event.type == "input") handle(glasses, event)
            } catch (e: GlassesError) {
                if (e.code == "closed") throw e
                val part = if (e.part == "") emptyMap() else mapOf("part" to e.part, "by" to e.by)
                glasses.log("com.example.error", mapOf("code" to e.code, "message" to e.message) + part)
            }
        }
        println("closed")
    } catch (e: GlassesError) {
        println(e.code)
    }
}
