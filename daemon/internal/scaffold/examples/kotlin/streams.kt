// Raw sound and movement: handlers get each piece of a stream while run takes the other events.
import java.nio.ByteBuffer
import java.nio.ByteOrder
import service.Settings
import service.connect

fun main() {
    val glasses = connect(Settings("Meter", "1.0", release = false))
    var loudest = 0
    glasses.startAudio(16000) { chunk ->
        val samples = ByteBuffer.wrap(chunk.data!!).order(ByteOrder.LITTLE_ENDIAN).asShortBuffer()
        while (samples.hasRemaining()) loudest = maxOf(loudest, Math.abs(samples.get().toInt()))
    }
    glasses.startMotion(5) { println("up: ${it.payload["az"]} thousandths of g") }
    glasses.run { event ->
        if (event.type == "input") {
            glasses.stopMotion()
            glasses.stopAudio()
            println("loudest sample: $loudest")
        }
    }
}
