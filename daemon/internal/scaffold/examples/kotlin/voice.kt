// Driven by voice: announces the phrases that it understands, listens, and answers aloud.
import service.GlassesError
import service.Settings
import service.connect

fun main() {
    val glasses = connect(Settings("Pages", "1.0", release = false))
    var page = 1
    glasses.announce(listOf("next page", "previous page"))
    try {
        glasses.startTranscription()
    } catch (e: GlassesError) {
        System.err.println("not listening: ${e.message}") // permission_denied, unsupported, ...
    }
    glasses.run { event ->
        if (event.type == "transcript" && event.payload["final"] == true) {
            val heard = event.payload["text"].toString().toLowerCase()
            val before = page
            if ("next page" in heard) page++
            if ("previous page" in heard) page = maxOf(1, page - 1)
            if (page != before) glasses.say("Page $page")
        }
    }
}
