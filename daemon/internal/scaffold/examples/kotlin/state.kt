// Follows the state of the glasses, and shows its text again whenever they can show it.
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private fun draw(glasses: Glasses, text: String) {
    try {
        glasses.show(mapOf("type" to "text", "text" to text))
    } catch (e: GlassesError) {
        if (e.code == "closed") throw e
        System.err.println("not shown (${e.code}): ${e.message}") // folded, too hot, not worn, out of reach: an event says when that ends
    }
}

fun main() {
    val glasses = connect(Settings("State", "1.0", release = false))
    var text = "All is well"
    draw(glasses, text)
    glasses.run { event ->
        val payload = event.payload
        when (event.type) {
            "battery" -> {
                val level = (payload["level"] as Number).toInt()
                if (level <= 15 && payload["charging"] == false) text = "Battery: $level %"
            }
            "permission" -> if (payload["state"] == "denied") text = "Not allowed: ${payload["part"]}"
        }
        if (event.type in listOf("battery", "permission", "hinge", "wear", "thermal", "link", "device")) draw(glasses, text)
    }
}
