package com.google.android.gms.tasks

abstract class Task<T>

object Tasks {
    @JvmStatic fun <T> await(task: Task<T>): T = throw UnsupportedOperationException("$task")
}
