// Remembers the wearer, who is asked first and can have it deleted. A language model answers and, in a later session,
// knows what the wearer has told.
import service.Event
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private const val QUESTION =
    "May I remember what you tell me, so that I know it the next time? You can have it deleted at any time."

private class Companion(val glasses: Glasses) {
    var remember = false
    var shown = listOf("")

    fun <T> attempt(command: () -> T): T? = try {
        command()
    } catch (e: GlassesError) {
        if (e.code == "closed") throw e
        System.err.println("refused (${e.code}): ${e.message} ${e.fixHint}") // folded, no gateway, no credit, ...
        null
    }

    fun draw(text: String, vararg buttons: String) {
        shown = listOf(text, *buttons)
        attempt {
            glasses.show(mapOf("type" to "column", "padding" to 4, "gap" to 4, "children" to listOf(
                mapOf("type" to "column", "grow" to 1, "overflow" to "paginate", "children" to listOf(
                    mapOf("type" to "text", "text" to text))),
                mapOf("type" to "row", "gap" to 8, "children" to buttons.map {
                    mapOf("type" to "button", "id" to it.substringBefore(' '), "text" to it) })
            )))
        }
    }

    fun change() = if (remember) "Forget me" else "Remember me" // the wearer may decide otherwise at any time

    fun begin() {
        remember = !attempt { glasses.memory() }.isNullOrEmpty() // a profile exists only if the wearer agreed
        if (remember) draw("Welcome back.", "Forget me") else draw(QUESTION, "Yes", "No")
        attempt { glasses.startTranscription() }
    }

    fun choose(target: String) {
        if (target == "Remember") return draw(QUESTION, "Yes", "No")
        if (target == "Forget" && attempt { glasses.forget(); true } == null) {
            return draw("It is not deleted.", "Forget me")
        }
        remember = target == "Yes"
        draw(if (remember) "Tell me about yourself." else "I remember nothing.", change())
    }

    fun hear(said: String) {
        // Some glasses can select only the first button, so the wearer may also say yes or no.
        val word = Regex("^(yes|no)\\b", RegexOption.IGNORE_CASE).find(said)?.value
        if (word != null && shown[0] == QUESTION) return choose(if (word.equals("yes", true)) "Yes" else "No")
        val answer = attempt { glasses.ask(said, "Answer in one short sentence.", remember = remember).text } ?: ""
        draw(answer.ifEmpty { "I cannot answer now." }, change())
    }

    fun handle(event: Event) {
        val target = event.payload["target"] as? String ?: ""
        if (event.type == "transcript" && event.payload["final"] == true) {
            hear(event.payload["text"].toString())
        } else if (event.type == "input" && target != "") {
            choose(target)
        } else if (event.type == "device") { // other glasses begin with a clear display
            draw(shown[0], *shown.drop(1).toTypedArray())
            attempt { glasses.startTranscription() }
        }
    }
}

fun main() {
    val glasses = connect(Settings("Companion", "1.0", release = false))
    val app = Companion(glasses)
    app.begin()
    glasses.run { app.handle(it) }
}
