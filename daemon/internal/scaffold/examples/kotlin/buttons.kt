// A list to choose from. The glasses move the focus and scroll; the app learns the choice from the id of its node.
import service.Settings
import service.connect

private val dishes = listOf("Soup", "Salad", "Pasta", "Cake")

private fun menu(chosen: String?): Map<String, Any?> = mapOf(
    "type" to "column", "gap" to 8, "padding" to 16, "children" to listOf(
        mapOf("type" to "text", "text" to if (chosen == null) "Choose a dish" else "You chose $chosen", "style" to "title"),
        mapOf("type" to "list", "gap" to 4, "grow" to 1, "overflow" to "scroll",
            "children" to dishes.map { mapOf("type" to "button", "id" to it, "text" to it) })
    )
)

fun main() {
    val glasses = connect(Settings("Menu", "1.0", release = false))
    var screen = menu(null)
    glasses.show(screen)
    glasses.run { event ->
        val target = event.payload["target"] as? String
        when {
            event.type == "device" && glasses.device["panel"] != null -> glasses.show(screen) // another model: its panel is clear
            event.type != "input" -> Unit
            event.payload["kind"] == "back" -> glasses.clear()
            event.payload["kind"] in listOf("select", "tap") && target != null -> {
                screen = menu(target)
                glasses.show(screen)
            }
        }
    }
}
