// Shows a text and counts taps until the session is closed. On Android pass release = !BuildConfig.DEBUG and run it on a
// thread of its own.
import service.Glasses
import service.Settings
import service.connect

private fun draw(glasses: Glasses, taps: Int) = glasses.show(mapOf(
    "type" to "column", "gap" to 8, "padding" to 16, "children" to listOf(
        mapOf("type" to "text", "text" to "Hello, glasses", "style" to "title"),
        mapOf("type" to "text", "text" to if (taps == 0) "Tap me" else "Taps: $taps")
    )
))

fun main() {
    val glasses = connect(Settings("Hello", "1.0", release = false))
    var taps = 0
    draw(glasses, taps)
    glasses.run { event ->
        if (event.type == "input" && event.payload["kind"] == "tap") draw(glasses, ++taps)
        else if (event.type == "device" && glasses.device["panel"] != null) draw(glasses, taps) // another model: its panel is clear
    }
}
