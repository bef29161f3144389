// Answers what the wearer asks. A language model answers and calls the app's tool; the answer is shown and spoken;
// back stops it.
import service.AssistantTool
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private class Shopping(val glasses: Glasses) {
    val items = ArrayList<String>()
    val properties = mapOf("item" to mapOf("type" to "string"))
    val item = mapOf("type" to "object", "properties" to properties, "required" to listOf("item"))
    val about = "Puts an item on the shopping list and returns the whole list."
    val tools = listOf(AssistantTool("add_item", about, item) {
        items.add(it["item"].toString())
        mapOf("items" to items)
    })

    fun <T> attempt(command: () -> T): T? = try {
        command()
    } catch (e: GlassesError) {
        if (e.code == "closed") throw e
        System.err.println("refused (${e.code}): ${e.message} ${e.fixHint}") // folded, no speaker, no credit, ...
        null
    }

    fun draw(question: String, answer: String) = attempt {
        glasses.show(mapOf("type" to "column", "padding" to 16, "gap" to 8, "children" to listOf(
            mapOf("type" to "text", "style" to "caption", "text" to question),
            mapOf("type" to "column", "grow" to 1, "overflow" to "paginate",
                "children" to listOf(mapOf("type" to "text", "text" to answer)))
        )))
    }

    fun handle(question: String) {
        draw(question, "…")
        val answer = attempt { glasses.ask(question, "Answer in one short sentence, which is spoken.", tools) }
        val text = (answer?.text ?: "").ifEmpty { "I cannot answer now." }
        draw(question, text)
        attempt { glasses.say(text.take(2000)) }
    }
}

fun main() {
    val glasses = connect(Settings("Shopping", "1.0", release = false))
    val app = Shopping(glasses)
    glasses.on("input") { if (it.payload["kind"] == "back") glasses.stopAsking() }
    app.draw("Shopping", "Ask me.")
    app.attempt { glasses.startTranscription() }
    glasses.run { event ->
        if (event.type == "transcript" && event.payload["final"] == true) app.handle(event.payload["text"].toString())
    }
}
