"""Questions about the whole: is what is stored what should be stored?"""
