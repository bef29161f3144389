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
                glasses.log("com.example.error", mapOf("code" to e.code, "message" to e.message))
            }
        }
        println("closed")
    } catch (e: GlassesError) {
        println(e.code)
    }
}
