// A voice assistant with two tools, which the wearer can interrupt. It shows what was heard and said. A tap begins a
// conversation, back ends it.
import service.AssistantTool
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private class Kitchen(val glasses: Glasses) {
    val items = ArrayList<String>()
    var heard = ""
    val tools = listOf(
        AssistantTool("add_item", "Puts an item on the shopping list and returns the whole list.",
            parameters("item", "string")) {
            items.add(it["item"].toString())
            mapOf("items" to items)
        },
        AssistantTool("start_timer", "Starts a kitchen timer of 1 to 180 minutes.", parameters("minutes", "integer")) {
            val minutes = (it["minutes"] as? Number)?.toLong() ?: 0
            if (minutes in 1..180) {
                glasses.after(minutes * 60_000) { draw("Timer", "Time is up.") }
                mapOf("started" to true)
            } else {
                mapOf("error" to "minutes must be 1 to 180")
            }
        }
    )

    fun parameters(name: String, type: String) = mapOf(
        "type" to "object", "properties" to mapOf(name to mapOf("type" to type)), "required" to listOf(name)
    )

    fun <T> attempt(command: () -> T): T? = try {
        command()
    } catch (e: GlassesError) {
        if (e.code == "closed") throw e
        System.err.println("refused (${e.code}): ${e.message} ${e.fixHint}") // folded, no gateway, no credit, ...
        null
    }

    fun draw(caption: String, said: String) {
        heard = caption
        attempt {
            glasses.show(mapOf("type" to "column", "padding" to 16, "gap" to 8, "children" to listOf(
                mapOf("type" to "text", "style" to "caption", "text" to caption),
                mapOf("type" to "column", "grow" to 1, "overflow" to "paginate",
                    "children" to listOf(mapOf("type" to "text", "text" to said)))
            )))
        }
    }

    fun talk() {
        val off = glasses.on("input") { if (it.payload["kind"] == "back") glasses.stopConversing() }
        draw("Kitchen", "I am listening.")
        val instructions = "You help in the kitchen. Answer in one or two short sentences."
        val end = attempt {
            glasses.converse(instructions, tools, onHeard = { draw(it, "…") }, onSaid = { draw(heard, it) },
                onError = { draw(heard, "I cannot answer that now.") })
        }
        off()
        draw("Kitchen", if (end?.reason == "stopped") "Tap to talk." else "I cannot talk now. Tap to try again.")
    }
}

fun main() {
    val glasses = connect(Settings("Kitchen", "1.0", release = false))
    val app = Kitchen(glasses)
    app.draw("Kitchen", "Tap to talk.")
    glasses.run { event ->
        if (event.type == "input" && event.payload["kind"] in listOf("tap", "select")) app.talk()
    }
}
